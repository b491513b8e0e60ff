package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fieldOwner = client.FieldOwner("integration-tests")

// manifests reads every object of a YAML file.
func manifests(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading a manifest: %w", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(content, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, content.Close()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("reading %s: %w", file, err), content.Close())
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func applyObject(ctx context.Context, object *unstructured.Unstructured) error {
	err := suite.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// crds reads the CRDs of the repository.
func crds() ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(repository, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no CRDs in config/crd/bases (%w): run make generate", err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		objects, err := manifests(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func installCRDs(ctx context.Context) error {
	all, err := crds()
	if err != nil {
		return err
	}
	for _, crd := range all {
		if err := applyObject(ctx, crd); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(30 * time.Second)
	for _, list := range []client.ObjectList{sessionList(), projectSettingsList()} {
		for {
			err := suite.admin.List(ctx, list, client.Limit(1))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("the CRDs are not served: %w", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// access is who the operator is and what it may do.
type access struct {
	namespace string
	account   string
	// rules are those that apply everywhere, localRules those in the operator's own namespace.
	rules, localRules []rbacv1.PolicyRule
}

func (a *access) user() string {
	return "system:serviceaccount:" + a.namespace + ":" + a.account
}

// installAccess applies what config/rbac lists, in a namespace of its own and nothing beside.
func installAccess(ctx context.Context) (*access, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	if err := suite.admin.Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("making the operator's namespace: %w", err)
	}
	a := &access{namespace: namespace.Name}
	objects, err := listed("rbac")
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := a.apply(ctx, object); err != nil {
			return nil, err
		}
	}
	if a.account == "" || len(a.rules) == 0 {
		return nil, errors.New("config/rbac has no ServiceAccount or no ClusterRole with rules")
	}
	return a, nil
}

// listed reads what the kustomization of a folder of config/ lists.
func listed(folder string) ([]*unstructured.Unstructured, error) {
	dir := filepath.Join(repository, "config", folder)
	kustomization, err := manifests(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	files, found, err := unstructured.NestedStringSlice(kustomization[0].Object, "resources")
	if err != nil || !found {
		return nil, fmt.Errorf("config/%s/kustomization.yaml lists no resources: %w", folder, err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		objects, err := manifests(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// apply puts an object of config/rbac into the operator's namespace, as kustomize would.
func (a *access) apply(ctx context.Context, object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "ServiceAccount":
		a.account = object.GetName()
	case "ClusterRole", "Role":
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		switch {
		case strings.HasPrefix(role.Name, "ambient-project-"):
			// What the groups of projects may do, not the operator.
		case object.GetKind() == "ClusterRole":
			a.rules = append(a.rules, role.Rules...)
		default:
			a.localRules = append(a.localRules, role.Rules...)
		}
	}
	return place(ctx, object, a.namespace)
}

// place applies an object of config/ as kustomize would put it into a namespace.
func place(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	switch object.GetKind() {
	case "ClusterRoleBinding", "RoleBinding":
		subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		for _, subject := range subjects {
			if subject, ok := subject.(map[string]any); ok {
				subject["namespace"] = namespace
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, subjects, "subjects"); err != nil {
			return fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if !strings.HasPrefix(object.GetKind(), "Cluster") {
		object.SetNamespace(namespace)
	}
	return applyObject(ctx, object)
}

// config is how the operator reaches the cluster: with a token of its ServiceAccount.
func (a *access) config(ctx context.Context) (*rest.Config, error) {
	token, err := tokenOf(ctx, a.namespace, a.account)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(suite.config)
	config.BearerToken = token
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// tokenOf mints a token of a ServiceAccount.
func tokenOf(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	lifetime := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	if err := suite.admin.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s: %w", name, err)
	}
	return request.Status.Token, nil
}
