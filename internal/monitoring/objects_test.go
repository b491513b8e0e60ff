package monitoring

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// full is a cluster that has everything.
func full() *World {
	return &World{
		Installation: Installation{Namespace: "ambient", Deployment: "agentic-operator", UID: "uid", PodLabels: map[string]string{
			"app.kubernetes.io/name": "agentic-operator", "app.kubernetes.io/component": "operator",
		}},
		Labels:    map[string]string{"release": "kps"},
		OpenShift: true, Console: true,
		Served:           map[Kind]bool{ServiceMonitors: true, PrometheusRules: true, Prometheuses: true, QuickStarts: true, YAMLSamples: true},
		Serving:          Serving{Secure: true, Port: 8443, HealthPort: 8081, Source: "ServiceCA", Trust: Trust{ConfigMap: "openshift-service-ca.crt", Key: "service-ca.crt"}},
		TokenRefreshedAt: "2026-01-02T03:04:05Z",
		TrustVersion:     "7",
		Content: Content{
			Rules:            map[string]any{"groups": []any{}},
			QuickStart:       map[string]any{"displayName": "First session"},
			YAMLSample:       map[string]any{"title": "Session"},
			ConsoleDashboard: "{}", GrafanaDashboard: "{}",
		},
	}
}

func worlds() map[string]*World {
	platform, kubernetes, plain := full(), full(), full()
	platform.NamespaceLabels = map[string]string{"openshift.io/cluster-monitoring": "true"}
	kubernetes.OpenShift, kubernetes.Console = false, false
	kubernetes.Served[QuickStarts], kubernetes.Served[YAMLSamples] = false, false
	kubernetes.Serving.Trust = Trust{Secret: "agentic-operator-metrics-own-cert", Key: "ca.crt"}
	*plain = *kubernetes
	plain.Serving = Serving{Port: 8080, HealthPort: 8081}
	return map[string]*World{"user-workload": full(), "platform": platform, "kubernetes": kubernetes, "kubernetes-http": plain}
}

// TestCase59TheFormOfEachMode: look at the golden files when this fails; -update writes them.
func TestCase59TheFormOfEachMode(t *testing.T) {
	for name, world := range worlds() {
		var text bytes.Buffer
		for _, object := range world.Objects() {
			document, err := yaml.Marshal(object.Content.Object)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString("---\n")
			text.Write(document)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, text.Bytes()) {
			t.Errorf("%s differs from %s; go test ./internal/monitoring -update, and look at the difference", name, file)
		}
	}
}

// TestCase59NoFilesOfTheScraper: the monitoring of user-defined projects refuses them, and older
// clusters refuse a scheme in capital letters.
func TestCase59NoFilesOfTheScraper(t *testing.T) {
	for name, world := range worlds() {
		for _, object := range world.Objects() {
			text, err := json.Marshal(object.Content.Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, forbidden := range []string{"bearerTokenFile", "caFile", "certFile", "keyFile", "insecureSkipVerify", "HTTPS", "scrapeClass", "openshift.io/cluster-monitoring"} {
				if strings.Contains(string(text), forbidden) {
					t.Errorf("%s: %s has %s", name, object.Content.GetKind(), forbidden)
				}
			}
		}
	}
}

// TestWhatEachObjectCarries: an owner at home, a note of the installation elsewhere, never both.
func TestWhatEachObjectCarries(t *testing.T) {
	for name, world := range worlds() {
		for _, object := range world.Objects() {
			owned := len(object.Content.GetOwnerReferences()) == 1
			noted := object.Content.GetAnnotations()[AnnotationInstallation] == "ambient/agentic-operator"
			if away := object.Away("ambient"); owned == away || noted != away {
				t.Errorf("%s: %s %s is owned: %t, noted: %t", name, object.Kind.Kind, object.Name, owned, noted)
			}
			if object.Content.GetLabels()[LabelManagedBy] != ManagedBy {
				t.Errorf("%s: %s %s has labels %v", name, object.Kind.Kind, object.Name, object.Content.GetLabels())
			}
		}
	}
}

func TestOffWantsNothing(t *testing.T) {
	world := full()
	world.Off = true
	if objects := world.Objects(); len(objects) > 0 || world.WantsToken() || world.WantsUserWorkload() {
		t.Errorf("switched off it wants %v", objects)
	}
}

// TestWhatTheServiceMonitorWaitsFor: a reference to nothing would have all of it refused.
func TestWhatTheServiceMonitorWaitsFor(t *testing.T) {
	for name, spoil := range map[string]func(*World){
		"token":       func(w *World) { w.TokenRefreshedAt = "" },
		"certificate": func(w *World) { w.Serving.Source = "" },
		"authority":   func(w *World) { w.TrustVersion = "" },
	} {
		world := full()
		spoil(world)
		objects := world.Objects()
		for _, object := range objects {
			if object.Kind == ServiceMonitors {
				t.Errorf("without its %s there is a ServiceMonitor", name)
			}
		}
		state := world.Report(objects, nil)
		if c := state.Conditions[0]; c.Part != PartServiceMonitor || c.Wired || !strings.Contains(c.Message, name) {
			t.Errorf("without its %s the state says %+v", name, c)
		}
	}
}
