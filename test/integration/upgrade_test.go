package integration

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/upgrade"
)

const conditionName = "agentic-operator.v0.0.0"

// operatorConditions is OLM's kind in the cluster, with the object that OLM makes for the installed
// version and the right to it that OLM gives the operator.
type operatorConditions struct {
	*project
	client client.Client
}

// installOperatorConditions brings OLM's own CRD into the cluster, until the test ends.
func installOperatorConditions(t *testing.T) *operatorConditions {
	t.Helper()
	o := &operatorConditions{project: &project{t: t, ctx: t.Context(), name: suite.access.namespace}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(suite.logs.containing(`"controller":"upgrade"`), "\n"))
		}
	})
	folder, err := exec.CommandContext(o.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/api").Output()
	if err != nil {
		t.Fatalf("finding OLM's CRDs: %v", err)
	}
	crds, err := manifests(filepath.Join(strings.TrimSpace(string(folder)), "crds", "operators.coreos.com_operatorconditions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if err := applyObject(o.ctx, crd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.removed(crd) })
	}
	o.eventually("OperatorConditions are served", func() error {
		// A new client each time: one remembers which kinds there are.
		if o.client, err = client.New(suite.config, client.Options{}); err != nil {
			return err
		}
		if err := operatorsv2.AddToScheme(o.client.Scheme()); err != nil {
			return err
		}
		return o.client.List(o.ctx, &operatorsv2.OperatorConditionList{})
	})
	o.asOLM()
	return o
}

func (o *operatorConditions) removed(object client.Object) {
	ctx := context.Background() // also when the test is over
	if err := suite.admin.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		o.t.Error(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); apierrors.IsNotFound(err) {
			return
		} else if time.Now().After(end) {
			o.t.Errorf("%s is not gone: %v", object.GetName(), err)
			return
		}
	}
}

// asOLM makes what OLM makes for an installed version.
func (o *operatorConditions) asOLM() {
	o.t.Helper()
	name := metav1.ObjectMeta{Namespace: o.name, Name: conditionName}
	role := &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"operators.coreos.com"},
		Resources: []string{"operatorconditions"}, ResourceNames: []string{conditionName},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: name,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: suite.access.account, Namespace: o.name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: conditionName},
	}
	for _, object := range []client.Object{role, binding} {
		o.create(object)
		o.t.Cleanup(func() { o.removed(object) })
	}
	condition := &operatorsv2.OperatorCondition{ObjectMeta: name}
	condition.Spec.ServiceAccounts, condition.Spec.Deployments = []string{suite.access.account}, []string{"agentic-operator"}
	if err := o.client.Create(o.ctx, condition); err != nil {
		o.t.Fatal(err)
	}
}

func (o *operatorConditions) read() (*operatorsv2.OperatorCondition, error) {
	object := &operatorsv2.OperatorCondition{}
	err := o.client.Get(o.ctx, client.ObjectKey{Namespace: o.name, Name: conditionName}, object)
	return object, err
}

// untouched complains when somebody wrote.
func (o *operatorConditions) untouched() error {
	object, err := o.read()
	if err == nil && object.Generation != 1 {
		err = fmt.Errorf("generation %d, conditions %v", object.Generation, object.Spec.Conditions)
	}
	return err
}

// becomes waits until OLM would see this status, written once, and of this reason.
func (o *operatorConditions) becomes(status metav1.ConditionStatus, reason string, generation int64) {
	o.t.Helper()
	o.eventually(fmt.Sprintf("Upgradeable is %s", status), func() error {
		object, err := o.read()
		if err != nil {
			return err
		}
		is := meta.FindStatusCondition(object.Spec.Conditions, operatorsv2.Upgradeable)
		if is == nil {
			return errors.New("it is not there")
		}
		if is.Status != status || is.Reason != reason || is.Message == "" || object.Generation != generation ||
			is.ObservedGeneration != generation || len(object.Spec.Deployments) != 1 || len(object.Spec.ServiceAccounts) != 1 {
			return fmt.Errorf("generation %d, spec %+v", object.Generation, object.Spec)
		}
		return nil
	})
}

// TestCase50UpgradesWait: OLM is told to wait while a session is on its way for longer than a
// moment, and no longer; not by a replica that does not lead; and by nobody where OLM is not.
func TestCase50UpgradesWait(t *testing.T) {
	env := map[string]string{"OPERATOR_CONDITION_NAME": conditionName}
	// Named by OLM, but the cluster does not know the kind.
	without := alone(t, env)
	p := newProject(t, without)
	p.session("without", "hang").reaches(running)
	long := p.session("long", "never-ready\nhang")
	long.reaches(creating)
	p.eventually("it is told that upgrades are not held", func() error {
		if len(suite.logs.containing("does not know OperatorConditions")) == 0 {
			return errors.New("the log does not say so")
		}
		return nil
	})
	if err := without.stop(); err != nil {
		t.Fatal(err)
	}

	conditions := installOperatorConditions(t)
	leader := alone(t, env, "--leader-elect")
	follower := alone(t, env, "--leader-elect")
	p.operator = leader
	p.session("quick", "hang").reaches(running)
	conditions.becomes(metav1.ConditionFalse, upgrade.ReasonSessionsInProgress, 2)
	long.stop()
	long.reaches(stopped)
	conditions.becomes(metav1.ConditionTrue, upgrade.ReasonNothingInProgress, 3)
	if asked := follower.gate.about("operatorconditions") + without.gate.about("operatorconditions"); asked > 0 {
		t.Errorf("who does not lead, or found no such kind, asked for it %d times", asked)
	}
	reads := leader.gate.about("operatorconditions")
	p.always(2*upgrade.Moment, "nothing is asked or written at rest", func() error {
		if now := leader.gate.about("operatorconditions"); now != reads {
			return fmt.Errorf("%d requests more", now-reads)
		}
		return nil
	})
}

// about counts the calls about a resource.
func (g *gate) about(resource string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := 0
	for _, c := range g.calls {
		if strings.Contains(c.path, "/"+resource+"/") {
			count++
		}
	}
	return count
}

// TestUpgradesAreNotHeldForEver: a session that never gets ready holds upgrades up to the limit, one
// with trouble not at all, and who takes over from a leader that is gone releases what it held.
func TestUpgradesAreNotHeldForEver(t *testing.T) {
	conditions := installOperatorConditions(t)
	env := map[string]string{"OPERATOR_CONDITION_NAME": conditionName, "UPGRADE_HOLD_LIMIT": "25"}
	operator := alone(t, env)
	p := newProject(t, operator)
	p.create(quota(p, "pods"))
	refused := p.session("refused", "hang")
	refused.until("has trouble", func(s *v1alpha1.AgenticSession) error {
		if ready := condition(s, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonQuotaExceeded {
			return fmt.Errorf("its reason is %s", ready.Reason)
		}
		return nil
	})
	p.always(upgrade.Moment*3/2, "a session with trouble holds nothing", conditions.untouched)
	q := newProject(t, operator)
	stuck := q.session("stuck", "never-ready\nhang")
	conditions.becomes(metav1.ConditionFalse, upgrade.ReasonSessionsInProgress, 2)
	conditions.becomes(metav1.ConditionTrue, upgrade.ReasonNothingInProgress, 3)
	if err := stuck.phaseIs(creating); err != nil {
		t.Fatal(err)
	}

	next := q.session("next", "never-ready\nhang")
	conditions.becomes(metav1.ConditionFalse, upgrade.ReasonSessionsInProgress, 4)
	if err := operator.stop(); err != nil {
		t.Fatal(err)
	}
	q.remove(next)
	q.remove(stuck)
	alone(t, env)
	conditions.becomes(metav1.ConditionTrue, upgrade.ReasonNothingInProgress, 5)
}
