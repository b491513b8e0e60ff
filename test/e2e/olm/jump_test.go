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
)

// jump installs the oldest version from a catalog that holds all of them: OLM goes straight to the
// newest, by skipRange over all between (case 52). The kinds are there already (case 53), sessions
// run, and meanwhile the leader is killed and the API server restarted.
func jump(t *testing.T) {
	oldest, newest := versions[0], versions[len(versions)-1]
	starting := "  startingCSV: " + csv(oldest).GetName() + "\n  installPlanApproval: Manual"
	install(t, newest, "  installPlanApproval: Automatic", starting)
	approve(t, csv(oldest).GetName())
	succeeded(t, oldest)
	projects(t)
	everyPhase(t)
	before := pictures(t)
	leaders := recordLeaders(t)
	led(t, leaders)
	approve(t, csv(newest).GetName())
	until(t, soon, "OLM to begin", func(ctx context.Context) (bool, string) {
		found := csv(newest)
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(found), found)
		return err == nil, fmt.Sprint(err)
	})
	kill(t, leaders)
	if err := cluster.Restart(t.Context(), "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	t.Logf("version %s is Succeeded %s after the restart", newest.Number, succeeded(t, newest))
	led(t, leaders)
	undisturbed(t, before, pictures(t))
	validToken(t, project, "runs")
	var installed []string
	for _, plan := range plans(t) {
		installed = append(installed, plan.csvs...)
	}
	slices.Sort(installed)
	if want := []string{csv(oldest).GetName(), csv(newest).GetName()}; !slices.Equal(installed, want) {
		t.Errorf("OLM installed %v, want %v", installed, want)
	}
	goOn(t)
}

// kill ends the leader without a chance to give its lock back.
func kill(t *testing.T, leaders *succession) {
	t.Helper()
	pod, _, _ := strings.Cut(leaders.holder(), "_")
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}}
	if err := cluster.Client.Delete(t.Context(), target, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// plan is an InstallPlan.
type plan struct {
	name string
	csvs []string
}

func plans(t *testing.T) []plan {
	t.Helper()
	listed := &unstructured.UnstructuredList{}
	listed.SetAPIVersion("operators.coreos.com/v1alpha1")
	listed.SetKind("InstallPlanList")
	if err := cluster.Client.List(t.Context(), listed, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var found []plan
	for i := range listed.Items {
		csvs, _, err := unstructured.NestedStringSlice(listed.Items[i].Object, "spec", "clusterServiceVersionNames")
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, plan{listed.Items[i].GetName(), csvs})
	}
	return found
}

// approve lets OLM carry out the InstallPlan of a version.
func approve(t *testing.T, csv string) {
	t.Helper()
	name := ""
	until(t, soon, "an InstallPlan of "+csv, func(context.Context) (bool, string) {
		found := plans(t)
		for _, p := range found {
			if slices.Contains(p.csvs, csv) {
				name = p.name
			}
		}
		return name != "", fmt.Sprintf("%v", found)
	})
	target := object("operators.coreos.com/v1alpha1", "InstallPlan", name)
	if err := cluster.Client.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"approved":true}}`))); err != nil {
		t.Fatal(err)
	}
}
