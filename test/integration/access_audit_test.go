package integration

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// unusedAccess lists the rules that are granted although these tests never see them used.
var unusedAccess = []string{
	// The API server asks for these where other things are done: RoleBindings made to ClusterRoles
	// whose rights the operator does not hold, and owner references put back, for which
	// OwnerReferencesPermissionEnforcement wants the right to delete the object.
	"rbac.authorization.k8s.io clusterroles bind",
	" limitranges delete",
	" persistentvolumeclaims delete",
	" services delete",
	"networking.k8s.io networkpolicies delete",
	"rbac.authorization.k8s.io roles delete",
	// Handed on to runners: nobody may grant what he does not hold.
	"vteam.ambient-code agenticsessions create",
	"vteam.ambient-code agenticsessions update",
	// Server-side apply is a patch; the API server asks for this one where it creates the object.
	" configmaps create",
	"monitoring.coreos.com servicemonitors create",
	"monitoring.coreos.com prometheusrules create",
	"console.openshift.io consolequickstarts create",
	"console.openshift.io consoleyamlsamples create",
	// Handed on to the platform's Prometheus, as above.
	" endpoints get",
	" endpoints list",
	" endpoints watch",
	"discovery.k8s.io endpointslices get",
	"discovery.k8s.io endpointslices list",
	"discovery.k8s.io endpointslices watch",
	// The recorder of Events patches one that repeats, which these tests are too short for.
	" events patch",
	"events.k8s.io events patch",
}

// judgeAccess compares what the operator did, by the API server's own account, with what config/rbac
// lets it do: nothing may be missing, and what is granted must be of use.
func judgeAccess() int {
	if suite.audit == nil {
		fmt.Println("access: not judged, the cluster writes no audit log (INTEGRATION_AUDIT_LOG)")
		return 0
	}
	events, err := suite.audit.of("")
	if err != nil {
		return failed(err)
	}
	used, refused := map[string]int{}, map[string]int{}
	for i := range events {
		e := &events[i]
		right := fmt.Sprintf("%s %s %s", e.ObjectRef.APIGroup, e.resource(), e.Verb)
		if e.refusedByRBAC() {
			refused[right]++
		} else if e.ObjectRef.Resource != "" {
			used[right]++
		}
	}
	code := 0
	for _, right := range sorted(refused) {
		fmt.Printf("access: MISSING in config/rbac: %s (refused %d times)\n", strings.TrimSpace(right), refused[right])
		code = 1
	}
	var unused []string
	for _, right := range rights(append(slices.Clone(suite.access.rules), suite.access.localRules...)) {
		if used[right] == 0 {
			unused = append(unused, right)
		}
	}
	for _, right := range unused {
		// Both sources of events need the same rights granted, but do not read alike: what is of no use
		// is judged where the operator works as it does in clusters.
		if !slices.Contains(unusedAccess, right) && !legacyWatch() {
			fmt.Printf("access: granted in config/rbac and never used: %s\n", strings.TrimSpace(right))
			code = 1
		}
	}
	fmt.Printf("access: %d requests by the operator used %d rights; %d refused, %d unused\n", len(events), len(used), len(refused), len(unused))
	return code
}

// rights spells out rules, one right a line: group, resource, verb.
func rights(rules []rbacv1.PolicyRule) []string {
	all := map[string]int{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[fmt.Sprintf("%s %s %s", group, resource, verb)]++
				}
			}
		}
	}
	return sorted(all)
}

func sorted(counts map[string]int) []string {
	var keys []string
	for key := range counts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
