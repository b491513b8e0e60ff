package example

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

var bundle = filepath.Join("..", "..", "..", "..", "bundle")

// The bundle's own examples can be read, and are what the tests run.
func TestReadsTheBundle(t *testing.T) {
	b, err := Read(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if b.Deployment != "agentic-operator" || b.Session.Spec.InitialPrompt == "" || b.Session.Name == "" || len(b.Settings.Spec.GroupAccess) == 0 {
		t.Errorf("the bundle is read as %+v", b)
	}
}

// An example with a field that its kind does not have is refused, as the API server would.
func TestRefusesAnExampleWithAFieldTooMany(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(bundle, "manifests", "*.clusterserviceversion.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	content, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), `"initialPrompt":`, `"firstPrompt":`, 1)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "x.clusterserviceversion.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "firstPrompt") {
		t.Errorf("the error is %v, want one that names firstPrompt", err)
	}
}

// Only repositories that can be reached stay.
func TestLeavesOutWhatCannotBeReached(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}()
	reached := "http://" + listener.Addr().String() + "/a.git"
	s := &v1alpha1.AgenticSession{}
	s.Spec.Repos = []v1alpha1.Repo{{URL: reached}, {URL: "https://localhost:1/b.git"}, {URL: "git@localhost.invalid:c.git"}}
	left := Within(t.Context(), s)
	if len(s.Spec.Repos) != 1 || s.Spec.Repos[0].URL != reached || len(left) != 2 {
		t.Errorf("repositories %+v stay, %v are left out", s.Spec.Repos, left)
	}
}
