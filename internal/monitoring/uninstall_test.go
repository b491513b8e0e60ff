package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// OLM takes the operator's rights before the operator, so what lies outside of its namespace stays.
// Wherever uninstalling is described, the command that removes that names all its kinds; the document
// on releases names the objects as well.
func TestWhatAnUninstallationLeavesIsTold(t *testing.T) {
	told := map[string]string{}
	for name, heading := range map[string]string{
		"README.md":          "\n## Install with OLM\n",
		"docs/releases.md":   "\n## Uninstalling\n",
		"docs/monitoring.md": "\n## Switching it off, and uninstalling\n",
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(content), heading)
		told[name], _, _ = strings.Cut(section, "\n## ")
	}
	var kinds []string
	for _, place := range Places("ours") {
		if !place.Away("ours") {
			continue
		}
		kinds = append(kinds, strings.ToLower(place.Kind.Kind))
		if section := told["docs/releases.md"]; !strings.Contains(section, "`"+place.Name+"`") || !strings.Contains(section, place.Kind.Kind) {
			t.Errorf("docs/releases.md does not say that %s %s stays", place.Kind.Kind, place.Name)
		}
	}
	slices.Sort(kinds)
	for name, section := range told {
		words := strings.Join(strings.Fields(strings.ReplaceAll(section, "\\\n", " ")), " ")
		want := "kubectl delete " + strings.Join(kinds, ",") + " -A -l " + LabelManagedBy + "=" + ManagedBy + " --ignore-not-found"
		if !strings.Contains(words, want) {
			t.Errorf("%s does not tell: %s", name, want)
		}
	}
}
