package integration

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/policy"
)

// TestTrustedCAWithoutCertificates: a ConfigMap that is yet to be filled, as OpenShift fills it, is waited for.
func TestTrustedCAWithoutCertificates(t *testing.T) {
	p := share(t)
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "trusted-ca-bundle"}}
	p.create(bundle)
	s := p.session("trusting", "hang")
	says(t, s.tells(pending, v1alpha1.ReasonPrerequisiteMissing), "trusted-ca-bundle", "ca-bundle.crt")
	p.patch(bundle, `{"data":{"ca-bundle.crt":"not a certificate"}}`)
	s.reaches(running)
	for _, volume := range s.pod().Spec.Volumes {
		if volume.ConfigMap != nil && volume.ConfigMap.Name == bundle.Name {
			return
		}
	}
	t.Error("the runner does not have the certificates")
}

// TestWhatIsHandedOn: what the operator is told and what the project holds for its runners is what a
// runner gets: image, proxy, Vertex AI with its credentials, the CA bundle, MCP servers.
func TestWhatIsHandedOn(t *testing.T) {
	p := newProject(t, nil)
	p.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "trusted-ca-bundle"}, Data: map[string]string{"ca-bundle.crt": "not a certificate"}})
	settings := p.settingsObject()
	settings.Spec.GroupAccess = []v1alpha1.GroupAccess{}
	settings.Spec.MCPServers = &v1alpha1.MCPServers{
		Custom:   map[string]v1alpha1.MCPServer{"search": {RawExtension: runtime.RawExtension{Raw: []byte(`{"url":"https://search.example.com"}`)}}},
		Disabled: []string{"webfetch"},
	}
	p.create(settings)
	shareSecret(t, vertex, "")
	env := map[string]string{
		"BACKEND_NAMESPACE": "platform", "AMBIENT_CODE_RUNNER_IMAGE": "registry.example/mine:3", "IMAGE_PULL_POLICY": "Always", "POD_FSGROUP": "1001",
		"USE_VERTEX": "1", "CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "example", "GOOGLE_APPLICATION_CREDENTIALS": "/app/vertex/key.json",
		"HTTP_PROXY": "http://proxy.example.com:1", "HTTPS_PROXY": "http://proxy.example.com:2", "NO_PROXY": ".svc",
	}
	p.operator = alone(t, env)
	s := p.session("told", "hang")
	s.reaches(running)
	pod := s.pod()
	runner := pod.Spec.Containers[0]
	if runner.Image != "registry.example/mine:3" || runner.ImagePullPolicy != corev1.PullAlways || pod.Spec.SecurityContext.FSGroup == nil || *pod.Spec.SecurityContext.FSGroup != 1001 {
		t.Errorf("image %s, pulled %s, fsGroup %v", runner.Image, runner.ImagePullPolicy, pod.Spec.SecurityContext.FSGroup)
	}
	told := map[string]string{}
	for _, v := range runner.Env {
		told[v.Name] = v.Value
	}
	want := map[string]string{
		"BACKEND_API_URL": "http://backend-service.platform.svc.cluster.local:8080/api", "USE_VERTEX": "1", "CLAUDE_CODE_USE_VERTEX": "1",
		"PROJECT_MCP_SERVERS": `{"custom":{"search":{"url":"https://search.example.com"}},"disabled":["webfetch"]}`,
	}
	for _, name := range []string{"CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		want[name] = env[name]
	}
	for name, value := range want {
		if told[name] != value {
			t.Errorf("%s is %q, want %q", name, told[name], value)
		}
	}
	if optional := runner.EnvFrom[0].SecretRef.Optional; optional == nil || !*optional {
		t.Error("with Vertex AI the runner waits for the keys that it does not need")
	}
	checkMounted(t, pod)

	made := &networkingv1.NetworkPolicy{}
	p.settings("are in effect", ready)
	p.get("runner-allow-backend-only", made)
	for namespace, lets := range map[string]bool{"platform": true, suite.access.namespace: true, p.name: false} {
		from := policy.Caller{Namespace: namespace, NamespaceLabels: map[string]string{corev1.LabelMetadataName: namespace}}
		if got, err := policy.Admits(made, from, &runner, runner.Ports[0].ContainerPort); got != lets || err != nil {
			t.Errorf("namespace %s is let in: %t, want %t, %v", namespace, got, lets, err)
		}
	}
}

// checkMounted fails unless the credentials of Vertex AI and the CA bundle are where runners look for
// them.
func checkMounted(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	holds := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil:
			holds[v.Name] = "Secret " + v.Secret.SecretName
		case v.ConfigMap != nil:
			holds[v.Name] = "ConfigMap " + v.ConfigMap.Name
		}
	}
	mounted := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if held := holds[m.Name]; held != "" {
			mounted[m.MountPath] = held + " " + m.SubPath
		}
	}
	want := map[string]string{
		"/app/vertex":                      "Secret ambient-vertex ",
		"/etc/pki/tls/certs/ca-bundle.crt": "ConfigMap trusted-ca-bundle ca-bundle.crt",
	}
	if !maps.Equal(mounted, want) {
		t.Errorf("the runner has %v, want %v", mounted, want)
	}
}
