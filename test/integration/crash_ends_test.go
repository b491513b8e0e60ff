package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/record"
)

// ends are what there is of each session of a project now, in words that do not differ between
// sessions that went through the same.
type ends map[string]string

// looks reads everything of the sessions of a project.
func (p *project) looks() (ends, error) {
	found := map[string][]string{}
	lists := []client.ObjectList{sessionList(), &batchv1.JobList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{},
		&corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}}
	for _, list := range lists {
		if err := suite.admin.List(p.ctx, list, client.InNamespace(p.name)); err != nil {
			return nil, err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			if name := victimName.FindString(object.GetName()); name != "" {
				found[name] = append(found[name], inWords(object, name))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	all := ends{}
	for name, lines := range found {
		all[name] = strings.Join(lines, "\n")
	}
	return all, nil
}

// inWords says of an object what must not differ.
func inWords(object client.Object, session string) string {
	name, _, _ := strings.Cut(strings.ReplaceAll(object.GetName(), session, "S"), "-run-")
	head := fmt.Sprintf("%T %s deleted=%t", object, name, object.GetDeletionTimestamp() != nil)
	switch object := object.(type) {
	case *v1alpha1.AgenticSession:
		return head + sessionInWords(object)
	case *batchv1.Job:
		return head + fmt.Sprintf(" run=%s ttl=%t deadline=%t finished=%d", object.Labels[v1alpha1.LabelRun], object.Spec.TTLSecondsAfterFinished != nil, object.Spec.ActiveDeadlineSeconds != nil, object.Status.Succeeded+object.Status.Failed)
	case *corev1.Pod:
		return head + fmt.Sprintf(" run=%s %s", object.Labels[v1alpha1.LabelRun], object.Status.Phase)
	case *corev1.Secret:
		at, err := time.Parse(time.RFC3339, object.Annotations[v1alpha1.AnnotationTokenRefreshedAt])
		return head + fmt.Sprintf(" run=%s keys=%v fresh=%t", object.Labels[v1alpha1.LabelRun], slices.Sorted(maps.Keys(object.Data)), err == nil && time.Since(at) < time.Hour)
	}
	return head
}

func sessionInWords(s *v1alpha1.AgenticSession) string {
	status := &s.Status
	text := fmt.Sprintf(" %s run=%d ranBefore=%t stopped=%q handled=%q observed=%t queued=%t provisioned=%t started=%t ended=%t job=%t/%t pod=%t",
		status.Phase, status.Run, status.RanBefore, status.StoppedReason, status.HandledRequest, status.ObservedGeneration == s.Generation,
		status.QueuedTime != nil, status.ProvisionedTime != nil, status.StartTime != nil, status.CompletionTime != nil,
		status.JobName != "", status.JobUID != "", status.PodName != "")
	text += fmt.Sprintf("\n  annotations %v", slices.Sorted(maps.Keys(s.Annotations)))
	for i := range status.Conditions {
		c := &status.Conditions[i]
		text += fmt.Sprintf("\n  %s=%s %s", c.Type, c.Status, c.Reason)
	}
	return text
}

// restsAs complains until there is of the session what there is of one that nobody disturbed.
func (v *victim) restsAs(all ends, want string) error {
	if got := all[v.name]; got != want {
		return fmt.Errorf("%s: there is\n%s\nwant\n%s", v, got, want)
	}
	return nil
}

// judge compares the history of a session with that of the undisturbed one.
func (v *victim) judge(want []v1alpha1.Phase) error {
	var faults []error
	if got := v.history(); !slices.Equal(got, want) {
		faults = append(faults, fmt.Errorf("it went through %v, want %v", got, want))
	}
	if jobs := uids(v.jobs()); len(jobs) != int(v.scenario.run) {
		faults = append(faults, fmt.Errorf("it had %d Jobs in %d runs", len(jobs), v.scenario.run))
	}
	if pods := uids(v.pods()); len(pods) != int(v.scenario.run) {
		faults = append(faults, fmt.Errorf("it had %d pods in %d runs", len(pods), v.scenario.run))
	}
	if most := mostAtOnce(v.pods()); most > 1 {
		faults = append(faults, fmt.Errorf("%d of its pods were alive at once", most))
	}
	versions := suite.recorder.Versions(v.uid)
	for i := 1; i < len(versions); i++ {
		if wrong := record.Step(versions[i-1].Object, versions[i].Object); wrong != "" {
			faults = append(faults, errors.New(wrong))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", v, errors.Join(faults...))
}

// judge compares what the sessions went through, and what was counted and told of it, and decides
// what is to be tried next.
func (s *strikes) judge(first, second *operatorRun) {
	for _, v := range s.all() {
		if err := v.judge(s.c.undisturbed[v.scenario].history()); err != nil {
			s.c.Error(err)
		}
	}
	for b, p := range s.projects {
		if len(s.victims[b]) == 0 {
			continue
		}
		p.eventually("all is counted, operators "+string(b), func() error { return p.counted(s.victims[b], first, second) })
		p.eventually("all is told", func() error { return p.toldOnce(s.victims[b]) })
	}
	for of, writes := range s.c.next {
		last, more := slices.Max(writes), false
		for _, v := range s.all() {
			if v.scenario != of || v.n == 0 {
				continue
			}
			if _, struck, _, _ := v.at(); struck != "" {
				at := point{of.name, v.blow}
				s.c.tried[at] = append(s.c.tried[at], struck)
				more = more || v.n == last
			}
		}
		if more {
			s.c.next[of] = []int{last + 1, last + 2}
		} else {
			delete(s.c.next, of)
		}
	}
	s.gone()
}

// gone checks that nothing is left of the sessions that were deleted, once nobody keeps them.
func (s *strikes) gone() {
	deleted := map[string]bool{}
	for _, v := range s.all() {
		if v.latest() != nil && v.latest().DeletionTimestamp != nil {
			s.c.letGo(v)
			deleted[v.project.name+"/"+v.name] = true
		}
	}
	for _, p := range s.projects {
		p.eventually("nothing is left of deleted sessions", func() error {
			looks, err := p.looks()
			for name, left := range looks {
				if deleted[p.name+"/"+name] {
					err = errors.Join(err, fmt.Errorf("of session %s is left\n%s", name, left))
				}
			}
			return err
		})
	}
}
