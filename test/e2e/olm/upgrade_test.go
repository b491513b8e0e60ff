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
	t.Cleanup(func() {
		if t.Failed() {
			team.describe(t, project)
		}
	})
	type step struct {
		name string
		do   func(t *testing.T)
	}
	steps := []step{
		{"InstallOldest", func(t *testing.T) { installOldest(t, versions[0]) }},
		{"ScorecardOfOldest", scorecardOfOldest},
		{"SessionsInEveryPhase", everyPhase},
		{"OneThatStarts", begin},
	}
	for i, v := range versions[1:] {
		steps = append(steps, step{"UpgradeTo" + v.Number, func(t *testing.T) { upgrade(t, versions[i], v) }})
		if i == 0 {
			steps = append(steps, step{"OneThatStartedIsStopped", giveUp})
		}
		if v == current {
			steps = append(steps, step{"Scorecard", scorecard})
		}
	}
	steps = append(steps, []step{
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
	team.install(t, v)
	t.Logf("version %s is Succeeded %s after the Subscription", v.Number, team.succeeded(t, v))
	team.readme(t, "kubectl -n "+rig.OperatorNamespace+" wait")
	team.deployed(t, v)
	jobs := &batchv1.JobList{}
	if err := cluster.Client.List(t.Context(), jobs, client.InNamespace(string(team)), client.HasLabels{"operatorframework.io/bundle-unpack-ref"}); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 1 || jobs.Items[0].Status.Succeeded != 1 {
		t.Errorf("%d Jobs unpacked the bundle, want 1 that succeeded: %+v", len(jobs.Items), jobs.Items)
	}
	projects(t)
}

// upgrade publishes a version and waits until OLM has installed it. While that goes on a session is made,
// one is stopped, and the token of one is due: one of the operators sees to them. The last version is
// held back by the one before it, which has sessions to see to, until it has done so.
func upgrade(t *testing.T, from, v olm.Version) {
	before := pictures(t)
	held := v == versions[len(versions)-1]
	if held {
		notLately(t, from)
		onTheWay(t)
		says(t, from, "False", "SessionsInProgress")
	}
	label := strings.ReplaceAll(v.Number, ".", "-")
	comes, leaves := "comes-"+label, "leaves-"+label
	if !held { // the node has room for three runners
		start(t, project, leaves, "hang", nil)
		reaches(t, project, leaves, v1alpha1.PhaseRunning)
	}
	leaders := recordLeaders(t)
	team.install(t, v)
	begun(t, v)
	if held {
		heldBack(t, v, from)
	}
	token := age(t, project, "runs")
	start(t, project, comes, "sleep 1s", nil)
	ends := map[string]v1alpha1.Phase{comes: v1alpha1.PhaseCompleted}
	if !held {
		ask(t, project, leaves, v1alpha1.DesiredStopped)
		ends[leaves] = v1alpha1.PhaseStopped
	}
	took := team.succeeded(t, v)
	t.Logf("version %s is Succeeded %s after OLM began", v.Number, took)
	// Readiness that waits for leadership would never end, and what is slow would time out (case 49).
	if took > 2*time.Minute {
		t.Errorf("the upgrade took %s", took)
	}
	team.deployed(t, v)
	led(t, leaders)
	gap := leaders.longestGap(t)
	if gap > mostTimeWithoutLeader {
		t.Errorf("nobody led for %s, want at most %s", gap, mostTimeWithoutLeader)
	}
	for name, phase := range ends {
		if s := reaches(t, project, name, phase); s.Status.Run != 1 {
			t.Errorf("session %s is in run %d, want 1", name, s.Status.Run)
		}
	}
	renewed(t, project, "runs", token)
	after := pictures(t)
	undisturbed(t, before, after)
	note(t, from.Number, v.Number, took, gap, before, after)
}

// begun waits until OLM has begun to install a version.
func begun(t *testing.T, v olm.Version) {
	t.Helper()
	until(t, soon, "OLM to begin", func(ctx context.Context) (bool, string) {
		found := team.csv(v)
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(found), found)
		return err == nil, fmt.Sprint(err)
	})
}

// led waits until one of the pods that run now leads.
func led(t *testing.T, leaders *succession) {
	t.Helper()
	until(t, soon, "a leader of the new version", func(ctx context.Context) (bool, string) {
		for _, pod := range team.operatorPods(ctx, t) {
			if strings.HasPrefix(leaders.holder(), pod.Name+"_") {
				return true, ""
			}
		}
		return false, leaders.holder() + " leads"
	})
}

// configure sets a variable where OLM keeps it. (Case 57: what is set on the Deployment is reverted.)
func configure(t *testing.T) {
	team.readme(t, "FINISHED_JOB_TTL")
	until(t, soon, "a Deployment with the variable, all of it ready", func(ctx context.Context) (bool, string) {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: string(team), Name: rig.OperatorName}, d); err != nil {
			return false, err.Error()
		}
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			if v.Name == "FINISHED_JOB_TTL" && v.Value == "3600" {
				return allReady(d), fmt.Sprintf("%+v", d.Status)
			}
		}
		return false, "without the variable"
	})
	team.readme(t, "get installplans")
}
