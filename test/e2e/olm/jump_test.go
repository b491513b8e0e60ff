//go:build e2e

package olm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// jump installs the oldest version from a catalog that holds all of them: OLM goes straight to the
// newest, by skipRange over all between (case 52). The kinds are there already (case 53), sessions
// run, and meanwhile the leader is killed and the API server restarted.
func jump(t *testing.T) {
	oldest, newest := versions[0], versions[len(versions)-1]
	starting := "  startingCSV: " + team.csv(oldest).GetName() + "\n  installPlanApproval: Manual"
	team.install(t, newest, "  installPlanApproval: Automatic", starting)
	approve(t, oldest)
	team.succeeded(t, oldest)
	projects(t)
	everyPhase(t)
	begin(t)
	before := pictures(t)
	leaders := recordLeaders(t)
	led(t, leaders)
	token := age(t, project, "runs")
	approve(t, newest)
	kill(t, leaders)
	if err := cluster.Restart(t.Context(), "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	took := team.succeeded(t, newest)
	t.Logf("version %s is Succeeded %s after the restart", newest.Number, took)
	led(t, leaders)
	renewed(t, project, "runs", token)
	after := pictures(t)
	undisturbed(t, before, after)
	note(t, oldest.Number, newest.Number+", leader killed", took, leaders.longestGap(t), before, after)
	found, err := plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var installed []string
	for _, csvs := range found {
		installed = append(installed, csvs...)
	}
	slices.Sort(installed)
	installed = slices.Compact(installed)
	if want := []string{team.csv(oldest).GetName(), team.csv(newest).GetName()}; !slices.Equal(installed, want) {
		t.Errorf("OLM installed %v, want %v", installed, want)
	}
	giveUp(t)
	goOn(t)
}

// kill ends the leader without a chance to give its lock back.
func kill(t *testing.T, leaders *succession) {
	t.Helper()
	pod, _, _ := strings.Cut(leaders.holder(), "_")
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: string(team), Name: pod}}
	if err := cluster.Client.Delete(t.Context(), target, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// plans are the InstallPlans by name, each with the versions that it installs.
func plans(ctx context.Context) (map[string][]string, error) {
	listed := &unstructured.UnstructuredList{}
	listed.SetAPIVersion("operators.coreos.com/v1alpha1")
	listed.SetKind("InstallPlanList")
	if err := cluster.Client.List(ctx, listed, client.InNamespace(string(team))); err != nil {
		return nil, fmt.Errorf("listing InstallPlans: %w", err)
	}
	found := map[string][]string{}
	for i := range listed.Items {
		csvs, _, err := unstructured.NestedStringSlice(listed.Items[i].Object, "spec", "clusterServiceVersionNames")
		if err != nil {
			return nil, fmt.Errorf("reading InstallPlans: %w", err)
		}
		found[listed.Items[i].GetName()] = csvs
	}
	return found, nil
}

// approve approves the InstallPlans of a version, as the README tells, until OLM has begun to install it:
// while a bundle is being unpacked OLM may put another plan in the place of the approved one.
func approve(t *testing.T, v olm.Version) {
	t.Helper()
	approved := map[string]bool{}
	for {
		plan := waiting(t, v, approved)
		if plan == "" {
			return
		}
		team.readme(t, "patch installplan NAME", "NAME", plan)
		approved[plan] = true
	}
}

// waiting is an InstallPlan of a version that is not approved yet, or nothing once OLM has begun.
func waiting(t *testing.T, v olm.Version, approved map[string]bool) (plan string) {
	t.Helper()
	until(t, soon, "OLM to install "+v.Number, func(ctx context.Context) (bool, string) {
		o := team.csv(v)
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err == nil {
			return true, ""
		}
		found, err := plans(ctx)
		for name, csvs := range found {
			if slices.Contains(csvs, o.GetName()) && !approved[name] {
				plan = name
			}
		}
		return plan != "", fmt.Sprintf("%v, %v", found, err)
	})
	return plan
}
