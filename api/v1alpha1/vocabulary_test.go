package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// constants are the string constants of a file whose names begin with a prefix, by name.
func constants(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found[spec.Names[0].Name] = value
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constants that begin with %s", file, prefix)
	}
	return found
}

// Documentation and tests range over the slices, so a constant that is in none is forgotten.
func TestEveryConstantIsInItsSlice(t *testing.T) {
	words := func(all []v1alpha1.Word) (words []string) {
		for _, w := range all {
			words = append(words, w.Word)
			if w.Meaning == "" {
				t.Errorf("%s has no meaning", w.Word)
			}
		}
		return words
	}
	var phases, keys []string
	for _, info := range v1alpha1.Phases {
		phases = append(phases, string(info.Phase))
		if info.Job == "" || info.Objects == "" || info.Meaning == "" {
			t.Errorf("phase %s is not described: %+v", info.Phase, info)
		}
	}
	for _, k := range v1alpha1.Keys {
		keys = append(keys, k.Key)
		if k.On == "" || k.WrittenBy == "" || k.ReadBy == "" || k.Meaning == "" {
			t.Errorf("key %s is not described: %+v", k.Key, k)
		}
	}
	for _, c := range []struct {
		file, prefix string
		listed       []string
	}{
		{"vocabulary.go", "Phase", phases},
		{"vocabulary.go", "Condition", words(v1alpha1.ConditionTypes)},
		{"vocabulary.go", "Reason", words(v1alpha1.Reasons)},
		{"project_vocabulary.go", "Condition", words(v1alpha1.ProjectConditionTypes)},
		{"project_vocabulary.go", "Reason", words(v1alpha1.ProjectReasons)},
		{"annotations.go", "Annotation", keys},
		{"annotations.go", "Label", keys},
	} {
		for name, value := range constants(t, c.file, c.prefix) {
			if n := count(c.listed, value); n != 1 {
				t.Errorf("%s (%q) is listed %d times, want once", name, value, n)
			}
		}
	}
	declared := len(constants(t, "annotations.go", "Annotation")) + len(constants(t, "annotations.go", "Label"))
	if declared != len(keys) {
		t.Errorf("%d annotations and labels are declared, %d are listed", declared, len(keys))
	}
}

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

func TestTerminal(t *testing.T) {
	terminal := []v1alpha1.Phase{v1alpha1.PhaseStopped, v1alpha1.PhaseCompleted, v1alpha1.PhaseFailed}
	for _, info := range v1alpha1.Phases {
		if want := slices.Contains(terminal, info.Phase); info.Phase.Terminal() != want {
			t.Errorf("%s is terminal: %t, want %t", info.Phase, info.Phase.Terminal(), want)
		}
	}
	if v1alpha1.Phase("").Terminal() || v1alpha1.Phase("Nonsense").Terminal() {
		t.Error("a phase that does not exist is terminal")
	}
}
