//go:build e2e

package olm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// hold has OLM hold whatever comes after a version, as an administrator does: with an override, which
// counts before what the operator itself says of being upgradeable.
func hold(t *testing.T, v olm.Version, held bool) {
	t.Helper()
	overrides := "[]"
	if held {
		overrides = `[{"type":"Upgradeable","status":"False","reason":"NotNow","message":"the demonstration goes on"}]`
	}
	condition := object("operators.coreos.com/v2", "OperatorCondition", csv(v).GetName())
	patch := fmt.Appendf(nil, `{"spec":{"overrides":%s}}`, overrides)
	if err := cluster.Client.Patch(t.Context(), condition, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

// heldBack wants OLM to leave a version waiting, for the reason that hold gave, and the one before it
// to work on.
func heldBack(t *testing.T, v, before olm.Version) {
	t.Helper()
	until(t, soon, v.Number+" to be held", func(ctx context.Context) (bool, string) {
		o := csv(v)
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		phase, reason, message := field(o, "status", "phase"), field(o, "status", "reason"), field(o, "status", "message")
		return phase == "Pending" && reason == "OperatorConditionNotUpgradeable" && strings.Contains(message, "the demonstration goes on"),
			fmt.Sprintf("%s, %s: %s, %v", phase, reason, message, err)
	})
	deployed(t, before)
	start(t, project, "held", "sleep 1s", nil)
	reaches(t, project, "held", "Completed")
}
