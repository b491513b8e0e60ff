//go:build e2e

package olm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
	"github.com/ambient-code/agentic-operator/test/rig/olm"
)

// mostTimeWithoutLeader is what an upgrade may take away from sessions.
const mostTimeWithoutLeader = 5 * time.Second

// TestUpgrade: the oldest version is installed as the README tells, runs sessions, and is upgraded
// through the channel up to the version being worked on, without one of them noticing. At the end it
// is uninstalled while sessions run. The steps build on each other. (Cases 48 to 53.)
func TestUpgrade(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, project)
		}
	})
	steps := []struct {
		name string
		do   func(t *testing.T)
	}{
		{"InstallOldest", func(t *testing.T) { installOldest(t, versions[0]) }},
		{"SessionsInEveryPhase", everyPhase},
	}
	for i, v := range versions[1:] {
		steps = append(steps, struct {
			name string
			do   func(t *testing.T)
		}{"UpgradeTo" + v.Number, func(t *testing.T) { upgrade(t, versions[i], v) }})
	}
	steps = append(steps, []struct {
		name string
		do   func(t *testing.T)
	}{
		{"SessionsGoOn", goOn},
		{"SettingsOfTheSubscription", configure},
		{"NothingWasForbidden", nothingForbidden},
		{"UninstallWhileSessionsRun", uninstall},
		{"JumpFromOldestToNewest", jump},
	}...)
	for _, step := range steps {
		if !t.Run(step.name, step.do) {
			t.FailNow()
		}
	}
}

// installOldest installs a version where nothing is, not even a kind of monitoring (case 51), and
// wants it to come by its bundle's image.
func installOldest(t *testing.T, v olm.Version) {
	install(t, v)
	t.Logf("version %s is Succeeded %s after the Subscription", v.Number, succeeded(t, v))
	readme(t, "kubectl -n "+rig.OperatorNamespace+" wait")
	deployed(t, v)
	jobs := &batchv1.JobList{}
	if err := cluster.Client.List(t.Context(), jobs, client.InNamespace(namespace), client.HasLabels{"operatorframework.io/bundle-unpack-ref"}); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 1 || jobs.Items[0].Status.Succeeded != 1 {
		t.Errorf("%d Jobs unpacked the bundle, want 1 that succeeded: %+v", len(jobs.Items), jobs.Items)
	}
	projects(t)
}

// upgrade publishes a version and waits until OLM has installed it. A session is made while that goes
// on: one of the operators starts it. The last version is held back for a while.
func upgrade(t *testing.T, from, v olm.Version) {
	last := v.Number == versions[len(versions)-1].Number
	if last {
		hold(t, from, true)
	}
	before := pictures(t)
	leaders := recordLeaders(t)
	install(t, v)
	until(t, soon, "OLM to begin", func(ctx context.Context) (bool, string) {
		found := csv(v)
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(found), found)
		return err == nil, fmt.Sprint(err)
	})
	if last {
		heldBack(t, v, from)
		hold(t, from, false)
	}
	between := "between-" + strings.ReplaceAll(v.Number, ".", "-")
	start(t, project, between, "sleep 1s", nil)
	took := succeeded(t, v)
	t.Logf("version %s is Succeeded %s after OLM began", v.Number, took)
	// Readiness that waits for leadership would never end, and what is slow would time out (case 49).
	if took > 2*time.Minute {
		t.Errorf("the upgrade took %s", took)
	}
	deployed(t, v)
	led(t, leaders)
	if gap := leaders.longestGap(t); gap > mostTimeWithoutLeader {
		t.Errorf("nobody led for %s, want at most %s", gap, mostTimeWithoutLeader)
	}
	if s := reaches(t, project, between, v1alpha1.PhaseCompleted); s.Status.Run != 1 {
		t.Errorf("session %s is in run %d, want 1", between, s.Status.Run)
	}
	undisturbed(t, before, pictures(t))
	validToken(t, project, "runs")
}

// led waits until one of the pods that run now leads.
func led(t *testing.T, leaders *succession) {
	t.Helper()
	until(t, soon, "a leader of the new version", func(ctx context.Context) (bool, string) {
		for _, pod := range operatorPods(ctx, t) {
			if strings.HasPrefix(leaders.holder(), pod.Name+"_") {
				return true, ""
			}
		}
		return false, leaders.holder() + " leads"
	})
}

// configure sets a variable where OLM keeps it. (Case 57: what is set on the Deployment is reverted.)
func configure(t *testing.T) {
	readme(t, "FINISHED_JOB_TTL")
	until(t, soon, "a Deployment with the variable, all of it ready", func(ctx context.Context) (bool, string) {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rig.OperatorName}, d); err != nil {
			return false, err.Error()
		}
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			if v.Name == "FINISHED_JOB_TTL" && v.Value == "3600" {
				s := d.Status
				return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == 2 && s.AvailableReplicas == 2 && s.Replicas == 2, fmt.Sprintf("%+v", s)
			}
		}
		return false, "without the variable"
	})
	readme(t, "get installplans")
}
