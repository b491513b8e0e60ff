package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// TestTheWholeOperatorIsWired: the real rules, dashboards and certificate, as the operator joins
// them, are taken by the real kinds.
func TestTheWholeOperatorIsWired(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.namespace(monitoring.MonitoringNamespace)
	rig.namespace(monitoring.ConsoleNamespace)
	rig.brings(monitoring.OptionalKinds...)
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	run := alone(t, map[string]string{"POD_NAME": rig.pod}, "--metrics-secure", "--metrics-bind-address="+address)
	for _, part := range []monitoring.Part{
		monitoring.PartServiceMonitor, monitoring.PartScrapeToken, monitoring.PartPrometheusRule, monitoring.PartDashboard,
		monitoring.PartQuickStart, monitoring.PartYAMLSample, monitoring.PartNetworkPolicy,
	} {
		rig.says(part, "Kept")
		rig.eventually("the metric says so of "+string(part), func() error {
			families, err := run.registry.Gather()
			if err != nil {
				return err
			}
			for _, family := range families {
				for _, series := range family.GetMetric() {
					if family.GetName() == "ambient_monitoring_wired" && series.GetLabel()[0].GetValue() == string(part) && series.GetGauge().GetValue() == 1 {
						return nil
					}
				}
			}
			return errors.New("it does not")
		})
	}
	rig.says(monitoring.PartCertificate, "Own")
	rig.verifiesWith("agentic-operator-metrics-own-cert")
	rig.authorityOfAGivenCertificate()
	rig.rests(2 * time.Second)
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}

// verifiesWith waits until scrapers are to verify with what lies in a Secret.
func (w *wiringRig) verifiesWith(secret string) {
	w.t.Helper()
	w.appears(monitoring.ServiceMonitors, monitorName, func(o *unstructured.Unstructured) error {
		endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
		if err != nil {
			return err
		}
		ca, _, err := unstructured.NestedStringMap(endpoints[0].(map[string]any), "tlsConfig", "ca", "secret")
		if err != nil || ca["name"] != secret || ca["key"] != "ca.crt" {
			return fmt.Errorf("its authority is %v, %w", ca, err)
		}
		return nil
	})
}

// authorityOfAGivenCertificate: scrapers get it next to their token, so that they go on to verify
// what is served when the Secret that it came from is spoilt. The state names that Secret.
func (w *wiringRig) authorityOfAGivenCertificate() {
	w.t.Helper()
	has := func(ca []byte) func(*unstructured.Unstructured) error {
		return func(o *unstructured.Unstructured) error {
			text, _, err := unstructured.NestedString(o.Object, "data", "ca.crt")
			if err != nil {
				return err
			}
			if held, err := base64.StdEncoding.DecodeString(text); err != nil || !bytes.HasPrefix(held, ca) {
				return fmt.Errorf("beside the token lies %q, %w", held, err)
			}
			return nil
		}
	}
	first, second := makeCertificate(w.t, "agentic-operator-metrics."+w.name+".svc", time.Hour), makeCertificate(w.t, "agentic-operator-metrics."+w.name+".svc", time.Hour)
	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: givenSecret}, Data: first.data}
	w.create(given)
	w.t.Cleanup(func() {
		if err := suite.admin.Delete(context.Background(), given); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	})
	w.says(monitoring.PartCertificate, "Given")
	w.verifiesWith(monitoring.TokenSecret)
	w.appears(monitoring.Secrets, monitoring.TokenSecret, has(first.data["ca.crt"]))

	w.patch(given, `{"data":{"ca.crt":"Z2FyYmFnZQ=="}}`)
	told := w.says(monitoring.PartCertificate, "SecretRefused")
	if !strings.HasPrefix(told, "Secret "+w.name+"/"+givenSecret+" cannot be used") || !strings.Contains(told, "put the certificates of the authority that signed tls.crt there as ca.crt") {
		w.t.Errorf("the state says %s", told)
	}
	w.rests(2 * time.Second)
	w.verifiesWith(monitoring.TokenSecret)
	secret := w.appears(monitoring.Secrets, monitoring.TokenSecret, has(first.data["ca.crt"]))

	given.Data = second.data
	given.ResourceVersion = ""
	if err := suite.admin.Update(w.ctx, given); err != nil {
		w.t.Fatal(err)
	}
	w.says(monitoring.PartCertificate, "Given")
	now := w.appears(monitoring.Secrets, monitoring.TokenSecret, has(second.data["ca.crt"]))
	w.authenticates(now, true)
	w.appears(monitoring.ServiceMonitors, monitorName, func(o *unstructured.Unstructured) error {
		if o.GetAnnotations()[monitoring.AnnotationRefreshed] == secret.GetAnnotations()[monitoring.AnnotationRefreshed] {
			return errors.New("scrapers are not told to look again")
		}
		return nil
	})
	w.delete(given)
	w.verifiesWith("agentic-operator-metrics-own-cert")
	w.appears(monitoring.Secrets, monitoring.TokenSecret, func(o *unstructured.Unstructured) error {
		if _, found, err := unstructured.NestedString(o.Object, "data", "ca.crt"); found || err != nil {
			return fmt.Errorf("an authority still lies beside the token: %w", err)
		}
		return nil
	})
}
