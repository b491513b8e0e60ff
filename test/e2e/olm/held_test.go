//go:build e2e

package olm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// onTheWay makes a session that goes on starting until it is stopped, and one that takes its whole grace
// period to stop.
func onTheWay(t *testing.T) {
	t.Helper()
	start(t, project, "starting", "never-ready\nhang", nil)
	start(t, project, "stopping", "ignore-sigterm\nhang", nil)
	reaches(t, project, "stopping", v1alpha1.PhaseRunning)
	ask(t, project, "stopping", v1alpha1.DesiredStopped)
	reaches(t, project, "stopping", v1alpha1.PhaseStopping)
	reaches(t, project, "starting", v1alpha1.PhaseCreating)
}

// notLately has an earlier hold of upgrades, if there was one, be long ago: for a while after a hold there
// is none, and starts that were slow may have been a reason for one.
func notLately(t *testing.T, v olm.Version) {
	t.Helper()
	stored := team.object("operators.coreos.com/v2", "OperatorCondition", team.csv(v).GetName())
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	before := stored.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(stored.Object, "spec", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok {
			m["lastTransitionTime"] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
		}
	}
	if err := unstructured.SetNestedSlice(stored.Object, conditions, "spec", "conditions"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Patch(t.Context(), stored, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// says waits until a version of the operator tells OLM that it may be upgraded, or may not, and why.
func says(t *testing.T, v olm.Version, upgradeable, reason string) {
	t.Helper()
	until(t, soon, fmt.Sprintf("version %s to say Upgradeable=%s, %s", v.Number, upgradeable, reason), func(ctx context.Context) (bool, string) {
		stored := team.object("operators.coreos.com/v2", "OperatorCondition", team.csv(v).GetName())
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return false, err.Error()
		}
		conditions, _, err := unstructured.NestedSlice(stored.Object, "spec", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Upgradeable" && m["status"] == upgradeable && m["reason"] == reason {
				t.Logf("version %s says Upgradeable=%s, %s: %s", v.Number, upgradeable, reason, m["message"])
				return true, ""
			}
		}
		return false, fmt.Sprintf("%v, %v", conditions, err)
	})
}

// heldBack wants OLM to leave a version waiting with the words of the one before it, which works on;
// and to go on as soon as that has nothing to wait for.
func heldBack(t *testing.T, v, before olm.Version) {
	t.Helper()
	until(t, soon, v.Number+" to be held", func(ctx context.Context) (bool, string) {
		o := team.csv(v)
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		phase, reason, message := field(o, "status", "phase"), field(o, "status", "reason"), field(o, "status", "message")
		return phase == "Pending" && reason == "OperatorConditionNotUpgradeable" && strings.Contains(message, "upgrades wait until that is done"),
			fmt.Sprintf("%s, %s: %s, %v", phase, reason, message, err)
	})
	team.deployed(t, before)
	start(t, project, "held", "sleep 1s", nil)
	reaches(t, project, "held", v1alpha1.PhaseCompleted)
	ask(t, project, "starting", v1alpha1.DesiredStopped)
	for _, name := range []string{"starting", "stopping"} {
		reaches(t, project, name, v1alpha1.PhaseStopped)
	}
	says(t, before, "True", "NothingInProgress")
}
