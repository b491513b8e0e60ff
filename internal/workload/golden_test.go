package workload_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// objects are all that is made for a session, in the order of the golden files.
func objects(p *workload.Plan) []runtime.Object {
	run := p.Session.Status.Run
	all := []runtime.Object{p.ServiceAccount(), p.Role(), p.RoleBinding()}
	if p.Volumeless() == "" {
		all = append(all, p.Workspace())
	}
	all = append(all, p.Service(), p.TokenSecret(run))
	if p.Storage.Shared {
		all = append(all, p.StorageSecret(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"},
			Data:       map[string][]byte{"access-key": []byte("a"), "secret-key": []byte("b"), "root-password": []byte("c")},
		}))
	}
	return append(all, p.Job(run))
}

func render(t *testing.T, p *workload.Plan) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, object := range objects(p) {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("---\n")
		all.Write(text)
	}
	return all.Bytes()
}

func TestObjectsAreAsInTheGoldenFiles(t *testing.T) {
	for _, c := range plans {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join("testdata", c.name+".yaml")
			got := render(t, c.plan())
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; write it with: go test ./internal/workload -update", err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the objects differ from %s; if that is meant, run go test ./internal/workload -update and look at the change:\n%s", file, difference(want, got))
			}
		})
	}
}

// difference shows the lines from the first that differs.
func difference(want, got []byte) string {
	a, b := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range a {
		if i >= len(b) || !bytes.Equal(a[i], b[i]) {
			return "want: " + string(bytes.Join(a[i:min(i+5, len(a))], []byte("\n"))) +
				"\ngot:  " + string(bytes.Join(b[min(i, len(b)):min(i+5, len(b))], []byte("\n")))
		}
	}
	return "got more: " + string(bytes.Join(b[len(a):], []byte("\n")))
}

// Maps have no order in Go; built many times, a forgotten sort shows.
func TestObjectsAreTheSameBytesEachTime(t *testing.T) {
	for _, c := range plans {
		first := render(t, c.plan())
		shared := c.plan()
		for range 20 {
			if again := render(t, c.plan()); !bytes.Equal(first, again) {
				t.Fatalf("%s: built from an equal plan it differs:\n%s", c.name, difference(first, again))
			}
			if again := render(t, shared); !bytes.Equal(first, again) {
				t.Fatalf("%s: built from the same plan again it differs:\n%s", c.name, difference(first, again))
			}
		}
	}
}
