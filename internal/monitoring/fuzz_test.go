package monitoring_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// FuzzUserWorkload changes the configuration of a cluster's monitoring, which is its administrator's:
// either it is left alone, or the one key is set, nothing else means anything else, and taking it back
// gives what was there.
func FuzzUserWorkload(f *testing.F) {
	for _, s := range []string{"", "\n", "{}", "a: 1", "enableUserWorkload: true\n", "enableUserWorkload: false # not yet\nprometheusK8s:\n  retention: 15d\n", "enableUserWorkload: maybe", "{enableUserWorkload: false, a: b}",
		"# only a comment", "a: &x 1\nb: *x\n", "---\na: 1\n", "a: 1\n---\nb: 2\n", "a: |\n  text", "? enableUserWorkload\n: false\n", "\"enableUserWorkload\": no\n", "a: 1\n...\n", "[1]", "enableUserWorkload: !!bool \"false\"", "a: 'x\n", "<<: {a: 1}\nenableUserWorkload: false\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, config string) {
		changed, was, err := monitoring.EnableUserWorkload(config)
		if err != nil {
			if changed != "" {
				t.Errorf("%q is refused and changed to %q", config, changed)
			}
			return
		}
		before, after := map[string]any{}, map[string]any{}
		if yaml.Unmarshal([]byte(config), &before) != nil || yaml.Unmarshal([]byte(changed), &after) != nil {
			return // read by another parser than the operator's
		}
		if after["enableUserWorkload"] != true {
			t.Errorf("%q becomes %q", config, changed)
		}
		if was == "" {
			if changed != config {
				t.Errorf("%q is on and becomes %q", config, changed)
			}
			return
		}
		back, err := monitoring.UndoUserWorkload(changed, was)
		if err != nil {
			return
		}
		restored := map[string]any{}
		if err := yaml.Unmarshal([]byte(back), &restored); err != nil || !same(before, restored) {
			t.Errorf("%q becomes %q and then %q (%v)", config, changed, back, err)
		}
	})
}

func same(a, b map[string]any) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
