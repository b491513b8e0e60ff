package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// why says what the operator does with each resource, by API group and name. A right without a
// reason is an error: nobody should have to guess why an operator may do what it may.
var why = map[string]string{
	"core/configmaps":             "sees whether a project has a CA bundle of its own (metadata only); reads the registry of runner types in the operator's namespace; keeps the dashboard and the account of the monitoring in place; on request sets one key of the cluster's monitoring configuration",
	"core/events":                 "reads why the Job controller could not make a pod (in all namespaces); tells who became the leader (in its own)",
	"core/limitranges":            "gives containers of a project that ask for nothing modest requests and limits; delete because only who may delete an object may put its owner back",
	"core/namespaces":             "serves only namespaces that are labelled as managed",
	"core/persistentvolumeclaims": "makes the workspace of a session",
	"core/pods":                   "reads how a run goes; removes pods that lost their Job; in its own namespace finds itself, and lets the platform's Prometheus find it",
	"core/secrets":                "makes the token Secret of a session; sees whether the project's runner Secret is there and which keys it has; keeps copies of its own shared Secrets in projects; reads and makes the certificate of its metrics endpoint",
	"core/serviceaccounts":        "makes the identity of a runner, and takes it back when the run ends; makes the identity of schedules",
	"core/serviceaccounts/token":  "mints the token of a runner",
	"core/services":               "makes the network address of a runner; sees whether its own metrics Service is there",
	"apiextensions.k8s.io/customresourcedefinitions": "sees whether the cluster has a TLS profile (OpenShift); notices when the kinds of monitoring and Console come and go (metadata only)",
	"authentication.k8s.io/tokenreviews":             "asks who reads its metrics",
	"authorization.k8s.io/subjectaccessreviews":      "asks whether they may",
	"config.openshift.io/apiservers":                 "follows that profile where it serves metrics",
	"batch/jobs":                                     "makes the Job of a run, and removes it on a stop",
	"coordination.k8s.io/leases":                     "agrees with other replicas on the one that works",
	"events.k8s.io/events":                           "publishes phase changes, and who became the leader",
	"networking.k8s.io/networkpolicies":              "keeps everybody from runners but those who call them; delete because only who may delete an object may put its owner back",
	"rbac.authorization.k8s.io/clusterroles":         "gives groups the roles of a project: it may bind these three, whose rights it does not hold, and no other",
	"rbac.authorization.k8s.io/roles":                "says what a runner and what a schedule may do",
	"rbac.authorization.k8s.io/rolebindings":         "gives that to their identities, gives groups the roles of a project and takes them away",
	"vteam.ambient-code/agenticsessions":             "reads sessions, names the runner's identity in them, removes requests that were carried out; create and update because it may give runners only what it holds itself",
	"vteam.ambient-code/agenticsessions/status":      "reports",
	"vteam.ambient-code/projectsettings":             "reads the settings of a project, and makes those of a project that has none",
	"vteam.ambient-code/projectsettings/status":      "reports",
	"core/endpoints":                                 "lets the platform's Prometheus find the operator: it may grant only what it holds itself",
	"apps/deployments":                               "finds the Deployment that owns what monitoring needs (metadata only)",
	"apps/replicasets":                               "is on the way from the operator's pod to its Deployment",
	"console.openshift.io/consolequickstarts":        "keeps the quick start in OpenShift's Console in place",
	"console.openshift.io/consoleyamlsamples":        "keeps the sample in OpenShift's Console in place",
	"discovery.k8s.io/endpointslices":                "as endpoints",
	"monitoring.coreos.com/prometheuses":             "tells whether a Prometheus reads the ServiceMonitor, and what keeps it from that",
	"monitoring.coreos.com/prometheusrules":          "keeps alerts and recording rules in place",
	"monitoring.coreos.com/servicemonitors":          "keeps in place what has the operator scraped",
}

// rights is the page made from the RBAC files under the root of the repository.
func rights(root string) page {
	return page{"rbac.md", "Rights of the operator",
		"The operator acts with exactly these rights. There is no `escalate` and no `*` among them, and `bind` for the roles of projects alone.",
		func() (string, error) {
			generated := filepath.Join(root, "config", "rbac", "role.yaml")
			everywhere, err := rightsOf("ClusterRole", generated)
			if err != nil {
				return "", err
			}
			athome, err := rightsOf("Role", generated, filepath.Join(root, "config", "rbac", "leader_election_role.yaml"))
			if err != nil {
				return "", err
			}
			return section("In every namespace", everywhere)[1:] + section("In its own namespace", athome), nil
		}}
}

// right is what rows of the table are about: a resource, or some objects of it by their names.
type right struct{ group, resource, only string }

// rightsOf tabulates the rules of all Roles or ClusterRoles in some files.
func rightsOf(kind string, files ...string) (string, error) {
	verbs := map[right][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the rules: %w", err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			role := rbacv1.ClusterRole{}
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				return "", fmt.Errorf("reading the rules in %s: %w", file, err)
			}
			if role.Kind == kind {
				collect(role.Rules, verbs)
			}
		}
	}
	var rows [][]string
	for r, allowed := range verbs {
		reason, known := why[r.group+"/"+r.resource]
		if !known {
			return "", fmt.Errorf("%s has a rule on %s of %s: say in hack/gendocs/rights.go what it is for", strings.Join(files, " or "), r.resource, r.group)
		}
		rows = append(rows, []string{r.group, code(r.resource) + r.only, strings.Join(slices.Compact(sorted(allowed)), ", "), reason})
	}
	slices.SortFunc(rows, slices.Compare)
	return table([]string{"API group", "Resource", "Verbs", "What for"}, rows), nil
}

// collect adds the verbs of rules.
func collect(rules []rbacv1.PolicyRule, verbs map[right][]string) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			if group == "" {
				group = "core"
			}
			for _, name := range rule.Resources {
				r := right{group: group, resource: name}
				if len(rule.ResourceNames) > 0 {
					r.only = " " + codes(rule.ResourceNames)
				}
				verbs[r] = append(verbs[r], rule.Verbs...)
			}
		}
	}
}
