package integration

import (
	"encoding/json"
	"fmt"
	"os"
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

// accessUsed is what the operator did, and what it was refused, by rights and how often.
type accessUsed struct {
	Requests      int
	Used, Refused map[string]int
}

// usedAccess is that by the API server's own account; nil where it gives none.
func usedAccess() (*accessUsed, error) {
	if suite.audit == nil {
		return nil, nil
	}
	events, err := suite.audit.of("")
	if err != nil {
		return nil, err
	}
	a := &accessUsed{Requests: len(events), Used: map[string]int{}, Refused: map[string]int{}}
	for i := range events {
		e := &events[i]
		right := fmt.Sprintf("%s %s %s", e.ObjectRef.APIGroup, e.resource(), e.Verb)
		if e.refusedByRBAC() {
			a.Refused[right]++
		} else if e.ObjectRef.Resource != "" {
			a.Used[right]++
		}
	}
	return a, nil
}

func (a *accessUsed) save(to string) error {
	content, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing the access that was used: %w", err)
	}
	return os.WriteFile(to, content, 0o600)
}

func (a *accessUsed) add(more *accessUsed) {
	a.Requests += more.Requests
	for right, times := range more.Used {
		a.Used[right] += times
	}
	for right, times := range more.Refused {
		a.Refused[right] += times
	}
}

// judge compares it with what config/rbac lets the operator do: nothing may be missing, and what is
// granted must be of use.
func (a *accessUsed) judge() int {
	if a == nil {
		fmt.Println("access: not judged, the cluster writes no audit log (INTEGRATION_AUDIT_LOG)")
		return 0
	}
	code := 0
	for _, right := range sorted(a.Refused) {
		// An API server that has just started refuses what its rules allow, as it has not read them yet.
		if a.used(right) {
			continue
		}
		fmt.Printf("access: MISSING in config/rbac: %s (refused %d times)\n", strings.TrimSpace(right), a.Refused[right])
		code = 1
	}
	var unused []string
	for _, right := range rights(append(slices.Clone(suite.access.rules), suite.access.localRules...)) {
		if !a.used(right) {
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
	fmt.Printf("access: %d requests by the operator used %d rights; %d refused, %d unused\n", a.Requests, len(a.Used), len(a.Refused), len(unused))
	return code
}

// used says that a right was used. Caches need those to list and to watch: they fill by watching, and
// list where that fails.
func (a *accessUsed) used(right string) bool {
	of, list := strings.CutSuffix(right, " list")
	return a.Used[right] > 0 || list && a.Used[of+" watch"] > 0
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
