package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// What config/default calls the operator.
const (
	OperatorNamespace = "agentic-operator-system"
	OperatorName      = "agentic-operator"
)

// Install applies config/default: CRDs, permissions and the operator. Its Deployment gets the
// given variables and, on a real node, the image made here; otherwise it gets no replicas, for
// RunOperator to stand in.
func (c *Cluster) Install(ctx context.Context, env map[string]string) error {
	return c.InstallInto(ctx, OperatorNamespace, env)
}

// InstallInto is Install for another namespace.
func (c *Cluster) InstallInto(ctx context.Context, namespace string, env map[string]string) error {
	manifests, err := c.manifests(ctx, namespace)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("reading the manifests: %w", err)
		}
		if object.GetKind() == "Deployment" {
			if err := c.adapt(object, env); err != nil {
				return err
			}
		}
		err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("rig"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return c.established(ctx)
}

// manifests renders config/default with another namespace, as a person would.
func (c *Cluster) manifests(ctx context.Context, namespace string) ([]byte, error) {
	overlay := filepath.Join(c.bin, "install-"+namespace)
	if err := os.MkdirAll(overlay, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the overlay: %w", err)
	}
	content := fmt.Sprintf("namespace: %s\nresources:\n- ../../config/default\n", namespace)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("writing the overlay: %w", err)
	}
	manifests, err := c.run(ctx, c.Kubectl(), "kustomize", overlay)
	if err != nil {
		return nil, fmt.Errorf("rendering the manifests: %w", err)
	}
	return manifests, nil
}

// adapt changes the operator's Deployment to what is to run here.
func (c *Cluster) adapt(object *unstructured.Unstructured, env map[string]string) error {
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
		return fmt.Errorf("reading the Deployment: %w", err)
	}
	if c.Node != NodeReal {
		deployment.Spec.Replicas = new(int32)
	}
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Image = OperatorImage.Name
	for _, name := range slices.Sorted(maps.Keys(env)) {
		container.Env = slices.DeleteFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: env[name]})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		return fmt.Errorf("writing the Deployment: %w", err)
	}
	delete(content, "status")
	object.Object = content
	return nil
}

// established waits until the API serves sessions.
func (c *Cluster) established(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		if err := c.Client.Get(ctx, client.ObjectKey{Name: "agenticsessions.vteam.ambient-code"}, crd); err != nil {
			return false, nil
		}
		conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(condition any) bool {
			m, ok := condition.(map[string]any)
			return ok && m["type"] == "Established" && m["status"] == "True"
		}), err
	})
	if err != nil {
		return fmt.Errorf("waiting until the API serves AgenticSessions: %w", err)
	}
	return nil
}

// Ready waits until the operator's Deployment is available.
func (c *Cluster) Ready(ctx context.Context) error { return c.ReadyIn(ctx, OperatorNamespace) }

// ReadyIn is Ready for another namespace.
func (c *Cluster) ReadyIn(ctx context.Context, namespace string) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: OperatorName}, d); err != nil {
			return false, err
		}
		return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
			d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the operator is available: %w", err)
	}
	return nil
}

// ServiceAccountKubeconfig writes a kubeconfig with which a program acts as the given
// ServiceAccount and nobody else.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, who types.NamespacedName, path string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: who.Namespace, Name: who.Name}}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	if err := c.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of the operator's ServiceAccount: %w", err)
	}
	admin, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(admin); err != nil {
		return fmt.Errorf("reading the kubeconfig's certificates: %w", err)
	}
	for _, user := range admin.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	if err := clientcmd.WriteToFile(*admin, path); err != nil {
		return fmt.Errorf("writing the operator's kubeconfig: %w", err)
	}
	return nil
}

// Project makes a managed namespace with the Secret that its runners need.
func (c *Cluster) Project(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		v1alpha1.LabelManaged:                "true",
		"pod-security.kubernetes.io/enforce": "restricted",
	}}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "ambient-runner-secrets"},
		StringData: map[string]string{"ANTHROPIC_API_KEY": "not-a-key"},
	}
	for _, object := range []client.Object{namespace, secret} {
		if err := c.Client.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("making the project %s: %w", name, err)
		}
	}
	return nil
}
