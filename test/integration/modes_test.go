package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// TestInstallModes: the operator serves the managed ones of the namespaces to which an install mode
// limits it, its own if it is among them, and neither touches nor caches the others.
func TestInstallModes(t *testing.T) {
	own := ownNamespace(t)
	for _, mode := range []struct {
		name string
		// served says which of the three namespaces are to be served: the operator's own and two more.
		served [3]bool
	}{
		{"OwnNamespace", [3]bool{true, false, false}},
		{"SingleNamespace", [3]bool{false, true, false}},
		{"MultiNamespace", [3]bool{true, true, false}},
		{"AllNamespaces", [3]bool{true, true, true}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			all := []*project{own.in(t), newProject(t, nil), newProject(t, nil)}
			var served, others []*project
			var targets []string
			for i, p := range all {
				if !mode.served[i] {
					others = append(others, p)
					continue
				}
				served = append(served, p)
				targets = append(targets, p.name)
			}
			if len(others) == 0 {
				targets = nil
			}
			inMode(t, targets, served, others)
		})
	}
}

func inMode(t *testing.T, targets []string, served, others []*project) {
	operator := alone(t, map[string]string{"WATCH_NAMESPACE": strings.Join(targets, ","), "LANGFUSE_ENABLED": "true"})
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: suite.access.namespace, Name: workload.LangfuseSecret},
		StringData: map[string]string{"LANGFUSE_HOST": "langfuse.example.com"},
	}
	if err := suite.admin.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.admin.Delete(context.Background(), source); err != nil {
			t.Error(err)
		}
	})
	var ignored []*session
	for _, p := range others {
		ignored = append(ignored, p.session("ignored", "hang"))
	}
	for _, p := range served {
		p.operator = operator
		s := p.session("served", "hang")
		s.reaches(running)
		p.settings("are there", exist)
		if p.name != source.Namespace {
			p.eventually("the shared Secret is copied", func() error {
				return suite.admin.Get(p.ctx, p.key(source.Name), &corev1.Secret{})
			})
		}
		s.stop()
		s.reaches(stopped)
		p.remove(s)
	}
	for _, s := range ignored {
		// Pending is the default of the schema.
		if status := s.latest().Status; status.Phase != pending || status.ObservedGeneration != 0 || len(status.Conditions) > 0 {
			t.Errorf("the session in %s, which is not to be served, was looked at: %+v", s.project.name, status)
		}
		if err := s.absent("projectsettings", &v1alpha1.ProjectSettings{}); err != nil {
			t.Errorf("in %s, which is not to be served: %v", s.project.name, err)
		}
		s.remove()
	}
	if targets != nil {
		operator.keptTo(t, append(targets, source.Namespace))
	}
}

// keptTo complains about each request for objects that are in none of these namespaces.
func (o *operatorRun) keptTo(t *testing.T, namespaces []string) {
	t.Helper()
	o.gate.mu.Lock()
	defer o.gate.mu.Unlock()
	for _, c := range o.gate.calls {
		parts := strings.Split(strings.Trim(c.path, "/"), "/")
		at := slices.Index(parts, "namespaces")
		switch {
		case len(parts) < 4 && at < 0 && parts[0] != "api": // what kinds there are
		case len(parts) < 3: // the same
		case at == len(parts)-1:
			if selected := c.query.Get("labelSelector"); !strings.Contains(selected, corev1.LabelMetadataName) && !legacyWatch() {
				t.Errorf("%s lists or watches namespaces by %q", c.path, selected)
			}
		case at < 0 || !slices.Contains(namespaces, parts[at+1]):
			t.Errorf("the operator asks for what is outside its namespaces: %s %s", c.method, c.path)
		}
	}
}

// ownProject is the operator's own namespace as a project.
type ownProject struct{ name string }

// ownNamespace makes a project of the operator's own namespace, until the test ends.
func ownNamespace(t *testing.T) *ownProject {
	t.Helper()
	p := &project{t: t, ctx: context.Background(), name: suite.access.namespace}
	p.label(v1alpha1.LabelManaged, "true")
	p.createRunnerSecret()
	t.Cleanup(func() {
		p.label(v1alpha1.LabelManaged, "")
		p.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: workload.DefaultRunnerSecret}})
	})
	return &ownProject{p.name}
}

// in is the project for one test. What the operator made of it is gone after the test, so that the
// next one begins with nothing.
func (o *ownProject) in(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, ctx: t.Context(), name: o.name}
	t.Cleanup(func() {
		p.ctx = context.Background()
		p.delete(&v1alpha1.ProjectSettings{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "projectsettings"}})
		p.eventually("the settings' objects are gone", func() error {
			limits := &corev1.LimitRangeList{}
			if err := suite.admin.List(p.ctx, limits, client.InNamespace(p.name)); err != nil || len(limits.Items) > 0 {
				return errors.Join(err, fmt.Errorf("%d LimitRanges", len(limits.Items)))
			}
			return nil
		})
	})
	return p
}
