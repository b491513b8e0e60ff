package table

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// prefixes of annotations and labels of the ClusterServiceVersion.
const (
	features  = "features.operators.openshift.io/"
	openshift = "operators.openshift.io/"
	framework = "operatorframework.io/"
)

func (f *files) labelled() []Row {
	a := f.csv.Annotations
	template := f.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
	maxVersion := none
	for _, p := range f.properties {
		if p.Type == "olm.maxOpenShiftVersion" {
			maxVersion = p.Value
		}
	}
	rows := []Row{
		{"capabilities", or(a["capabilities"])},
		{"categories", or(a["categories"])},
		{"containerImage / createdAt / support", fmt.Sprintf("%s / %s / %s", or(a["containerImage"]), or(a["createdAt"]), or(a["support"]))},
		{"repository", or(a["repository"])},
		{"certified", or(a["certified"])},
		{openshift + "valid-subscription", or(a[openshift+"valid-subscription"])},
		{openshift + "infrastructure-features (legacy)", or(a[openshift+"infrastructure-features"])},
		{openshift + "must-gather-image", or(a[openshift+"must-gather-image"])},
		{features + "*", answers(a)},
		{"suggested-namespace", or(a[framework+"suggested-namespace"])},
		{"suggested-namespace-template", compact(a[framework+"suggested-namespace-template"])},
		{"cluster-monitoring", or(a[framework+"cluster-monitoring"])},
		{"initialization-resource", compact(a[framework+"initialization-resource"])},
		{"operators.operatorframework.io/internal-objects", or(a["operators.operatorframework.io/internal-objects"])},
		{"console.openshift.io/plugins", or(a["console.openshift.io/plugins"])},
		{"console.openshift.io/disable-operand-delete", or(a["console.openshift.io/disable-operand-delete"])},
		{"openshift.io/required-scc", or(template.Annotations["openshift.io/required-scc"])},
		{"target.workload.openshift.io/management", or(template.Annotations["target.workload.openshift.io/management"])},
	}
	bundle := "operators.operatorframework.io.bundle."
	return append(rows,
		Row{"arch.* labels", list(labels(f.csv.Labels, framework+"arch."))},
		Row{"os.* labels", list(labels(f.csv.Labels, framework+"os."))},
		Row{"com.redhat.openshift.versions", or(f.notes["com.redhat.openshift.versions"])},
		Row{"olm.maxOpenShiftVersion", maxVersion},
		Row{"channels / default channel", fmt.Sprintf("%s / %s", or(f.notes[bundle+"channels.v1"]), or(f.notes[bundle+"channel.default.v1"]))},
	)
}

// answers are those to the features that the catalog of OpenShift asks for.
func answers(annotations map[string]string) string {
	var yes []string
	all := 0
	for key, value := range annotations {
		if name, found := strings.CutPrefix(key, features); found {
			all++
			if value == "true" {
				yes = append(yes, name)
			}
		}
	}
	slices.Sort(yes)
	return fmt.Sprintf("%d answered; true: %s", all, list(yes))
}

// labels are the names of supported labels after a prefix.
func labels(all map[string]string, prefix string) (found []string) {
	for key, value := range all {
		if name, ours := strings.CutPrefix(key, prefix); ours && value == "supported" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// compact is an object as JSON on one line.
func compact(text string) string {
	var object any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return or(text)
	}
	line, err := json.Marshal(object)
	if err != nil {
		return or(text)
	}
	return string(line)
}
