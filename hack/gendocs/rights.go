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
	"core/configmaps":             "sees whether a project has a CA bundle of its own (metadata only); reads the registry of runner types in the operator's namespace",
	"core/events":                 "reads why the Job controller could not make a pod (in all namespaces); tells who became the leader (in its own)",
	"core/limitranges":            "gives containers of a project that ask for nothing modest requests and limits; delete because only who may delete an object may put its owner back",
	"core/namespaces":             "serves only namespaces that are labelled as managed",
	"core/persistentvolumeclaims": "makes the workspace of a session",
	"core/pods":                   "reads how a run goes; removes pods that lost their Job",
	"core/secrets":                "makes the token Secret of a session; sees whether the project's runner Secret is there and which keys it has; keeps copies of its own shared Secrets in projects; reads and makes the certificate of its metrics endpoint",
	"core/serviceaccounts":        "makes the identity of a runner, and takes it back when the run ends; makes the identity of schedules",
	"core/serviceaccounts/token":  "mints the token of a runner",
	"core/services":               "makes the network address of a runner; sees whether its own metrics Service is there",
	"apiextensions.k8s.io/customresourcedefinitions": "sees whether the cluster has a TLS profile (OpenShift)",
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
}

// rights is the page made from the RBAC files under the root of the repository.
func rights(root string) page {
	return page{"rbac.md", "Rights of the operator",
		"The operator acts with exactly these rights. There is no `escalate` and no `*` among them, and `bind` for the roles of projects alone.",
		func() (string, error) {
			everywhere, err := rightsOf(filepath.Join(root, "config", "rbac", "role.yaml"))
			if err != nil {
				return "", err
			}
			athome, err := rightsOf(filepath.Join(root, "config", "rbac", "leader_election_role.yaml"))
			if err != nil {
				return "", err
			}
			return section("In every namespace", everywhere)[1:] + section("In its own namespace", athome), nil
		}}
}

// rightsOf tabulates the rules of a Role or ClusterRole, a row for each resource.
func rightsOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the rules: %w", err)
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.Unmarshal(text, &role); err != nil {
		return "", fmt.Errorf("reading the rules in %s: %w", file, err)
	}
	verbs, only := map[[2]string][]string{}, map[[2]string]string{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			if group == "" {
				group = "core"
			}
			for _, name := range rule.Resources {
				r := [2]string{group, name}
				if len(rule.ResourceNames) > 0 {
					only[r] = " " + codes(rule.ResourceNames)
				}
				verbs[r] = append(verbs[r], rule.Verbs...)
			}
		}
	}
	var rows [][]string
	for r, allowed := range verbs {
		reason, known := why[r[0]+"/"+r[1]]
		if !known {
			return "", fmt.Errorf("%s has a rule on %s of %s: say in hack/gendocs/rights.go what it is for", file, r[1], r[0])
		}
		rows = append(rows, []string{r[0], code(r[1]) + only[r], strings.Join(slices.Compact(sorted(allowed)), ", "), reason})
	}
	slices.SortFunc(rows, slices.Compare)
	return table([]string{"API group", "Resource", "Verbs", "What for"}, rows), nil
}
