package bundle

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// installer is the ServiceAccount that OLM v1 installs the operator with.
const installer = "agentic-operator-installer"

// Installer is the ClusterRole that OLM v1's ServiceAccount needs to install the bundle: the
// rights to make each object, and all that those objects grant, because nobody may grant more than
// he has.
func Installer(dir string) ([]byte, error) {
	path, err := CSVPath(dir)
	if err != nil {
		return nil, err
	}
	csv, err := ReadCSV(path)
	if err != nil {
		return nil, err
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	var deployments, accounts []string
	for _, d := range strategy.DeploymentSpecs {
		deployments = append(deployments, d.Name)
	}
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: installer},
	}
	for _, p := range append(strategy.ClusterPermissions, strategy.Permissions...) {
		accounts = append(accounts, p.ServiceAccountName)
		role.Rules = append(role.Rules, p.Rules...)
	}
	crds, granted, err := shipped(dir)
	if err != nil {
		return nil, err
	}
	role.Rules = append(role.Rules, granted...)
	role.Rules = append(role.Rules, keep([]string{"apps"}, "deployments", deployments)...)
	role.Rules = append(role.Rules, keep([]string{""}, "serviceaccounts", accounts)...)
	role.Rules = append(role.Rules, keep([]string{"apiextensions.k8s.io"}, "customresourcedefinitions", crds)...)
	for _, r := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		// Their names hold a hash that OLM makes, so they cannot be named here.
		role.Rules = append(role.Rules, keep([]string{rbacv1.GroupName}, r, nil)...)
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{"olm.operatorframework.io"}, Resources: []string{"clusterextensions/finalizers"},
		ResourceNames: []string{csv.Name[:len(csv.Name)-len(".v"+csv.Spec.Version.String())]}, Verbs: []string{"update"},
	})
	out, err := yaml.Marshal(role)
	if err != nil {
		return nil, fmt.Errorf("writing the installer's rights: %w", err)
	}
	return out, nil
}

// keep is the right to make and keep objects of a kind: making cannot be limited to names.
func keep(groups []string, resource string, names []string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: groups, Resources: []string{resource}, Verbs: []string{"create", "list", "watch"}},
		{APIGroups: groups, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get", "update", "patch", "delete"}},
	}
}

// shipped reads the manifests beside the CSV: the names of the CRDs, and what ClusterRoles grant.
func shipped(dir string) (crds []string, granted []rbacv1.PolicyRule, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
	if err != nil {
		return nil, nil, fmt.Errorf("listing the manifests: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, fmt.Errorf("reading a manifest: %w", err)
		}
		u := unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &u.Object); err != nil {
			return nil, nil, fmt.Errorf("%s is no manifest: %w", file, err)
		}
		switch u.GetKind() {
		case "CustomResourceDefinition":
			crds = append(crds, u.GetName())
		case "ClusterRole":
			role := rbacv1.ClusterRole{}
			if err := yaml.UnmarshalStrict(bytes.TrimSpace(content), &role); err != nil {
				return nil, nil, fmt.Errorf("%s is no ClusterRole: %w", file, err)
			}
			granted = append(granted, role.Rules...)
		}
	}
	return crds, granted, nil
}
