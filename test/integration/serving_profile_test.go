package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The API with which an OpenShift cluster says how to use TLS, as far as it is read.
const (
	profileCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apiservers.config.openshift.io, annotations: {api-approved.kubernetes.io: "https://github.com/openshift/api/pull/470"}}
spec:
  group: config.openshift.io
  names: {kind: APIServer, listKind: APIServerList, plural: apiservers, singular: apiserver}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	profileObject = `
apiVersion: config.openshift.io/v1
kind: APIServer
metadata: {name: cluster}
spec: {tlsSecurityProfile: %s}
`
)

// TestTLSProfile: new connections follow the cluster's TLS profile, whenever its API and its object
// come, change and go.
func TestTLSProfile(t *testing.T) {
	s := scraping(t)
	s.trustsOwn()
	old, middle := *s, *s
	old.newest, middle.newest = tls.VersionTLS11, tls.VersionTLS12
	usual := func() error { return errors.Join(refused(&old), middle.reads(), s.reads()) }
	if err := usual(); err != nil {
		t.Errorf("without a profile: %v", err)
	}
	crd := parse(t, profileCRD)
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(suite.admin.Delete(context.Background(), crd)); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		if err := applyObject(t.Context(), crd.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		s.profile(`{type: Modern, modern: {}}`)
		s.eventually("Modern refuses TLS 1.2", func() error { return errors.Join(refused(&middle), s.reads()) })
		s.profile(`{type: Old, old: {}}`)
		s.eventually("Old lets TLS 1.1 in", func() error { return errors.Join(old.reads(), middle.reads(), s.reads()) })
		s.profile(`{type: Intermediate, intermediate: {}}`)
		s.eventually("Intermediate refuses TLS 1.1", usual)
		s.profile(`{type: Custom, custom: {ciphers: [ECDHE-ECDSA-AES256-GCM-SHA384, DHE-RSA-AES128-GCM-SHA256], minTLSVersion: VersionTLS12}}`)
		s.eventually("Custom chooses the cipher", func() error {
			_, _, served, err := middle.scrape()
			if err == nil && served.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 {
				err = fmt.Errorf("the cipher is %s", tls.CipherSuiteName(served.CipherSuite))
			}
			return err
		})
		s.profile(`{type: Modern}`)
		s.eventually("Modern refuses TLS 1.2", func() error { return refused(&middle) })
		s.delete(crd.DeepCopy())
		s.eventually("without the API all is as before", usual)
		s.eventually("the API is gone", func() error {
			if err := suite.admin.Get(s.ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there (%w)", err)
			}
			return nil
		})
	}
	if err := applyObject(t.Context(), crd.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	s.profile(`{type: Modern}`)
	late := *s
	late.run, late.address = serveSecurely(t)
	late.eventually("an operator that starts with the profile there follows it", late.reads)
	late.newest = tls.VersionTLS12
	late.eventually("it refuses TLS 1.2", func() error { return refused(&late) })
}

// refused complains unless the server refuses the scraper's version of TLS.
func refused(s *scraper) error {
	err := s.reads()
	if err == nil {
		return fmt.Errorf("it is let in with %s", tls.VersionName(s.newest))
	}
	if !strings.Contains(err.Error(), "protocol version not supported") {
		return err
	}
	return nil
}

// profile has the cluster ask for a TLS profile.
func (s *scraper) profile(profile string) {
	s.t.Helper()
	object := parse(s.t, fmt.Sprintf(profileObject, profile))
	s.eventually("the profile is set", func() error { return applyObject(s.ctx, object.DeepCopy()) })
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
