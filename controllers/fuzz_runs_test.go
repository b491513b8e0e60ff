package controllers

import (
	"context"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// fixed is a cluster with one session and one Job, read alone.
type fixed struct {
	client.Client
	session *v1alpha1.AgenticSession
	job     *batchv1.Job
}

func (c *fixed) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch into := object.(type) {
	case *v1alpha1.AgenticSession:
		if c.session != nil && key == client.ObjectKeyFromObject(c.session) {
			c.session.DeepCopyInto(into)
			return nil
		}
	case *batchv1.Job:
		if c.job != nil && key == client.ObjectKeyFromObject(c.job) {
			c.job.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *fixed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if jobs, ok := list.(*batchv1.JobList); ok && c.job != nil {
		jobs.Items = []batchv1.Job{*c.job.DeepCopy()}
	}
	return nil
}

// FuzzRunOfJob finds out which run goes on from Jobs with whatever names, labels and owners: only a Job of
// this very session counts, its label not at all, and there is a run after it.
func FuzzRunOfJob(f *testing.F) {
	f.Add("a-run-7", "7", "a", "u", true)
	f.Add("a-run-2", "9223372036854775807", "a", "u", true)
	f.Add("a-run-9223372036854775807", "2", "a", "u", true)
	f.Add("a-run-3-run-5", "5", "a", "u", true)
	f.Add("b-run-5", "5", "b", "u", true)
	f.Add("a-run-5", "5", "a", "another", true)
	f.Add("a-run-5", "-1", "a", "u", false)
	f.Add("a-run-05", "x", "", "", false)
	f.Fuzz(func(t *testing.T, name, label, owner, uid string, controls bool) {
		s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: "project", Name: "a", UID: "u"}}
		s.Status.Phase = v1alpha1.PhaseRunning
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "project", Name: name, Labels: map[string]string{v1alpha1.LabelRun: label}, Annotations: map[string]string{v1alpha1.AnnotationSessionUID: uid}}}
		if controls {
			job.OwnerReferences = []metav1.OwnerReference{{Kind: "AgenticSession", Name: owner, UID: types.UID(uid), Controller: &controls}}
		}
		r := &AgenticSessionReconciler{Client: &fixed{job: job}}
		if err := r.number(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		run := s.Status.Run
		if run != 1 && (uid != "u" || workload.JobName("a", run) != name) {
			t.Errorf("run %d is said to go on, of Job %q labelled %q of %q %q", run, name, label, owner, uid)
		}
		if uid == "u" && name == "a-run-7" && run != 7 {
			t.Errorf("run 7 goes on, and not %d", run)
		}
		if workload.SessionOfJob(workload.JobName("a", run+1)) != "a" || run < 1 {
			t.Errorf("run %d has no successor", run)
		}
	})
}

// FuzzBehind looks at what is to be removed, with whatever label and owner: an object of a run that the API
// server's session has come to stays, one of a run that nobody began goes.
func FuzzBehind(f *testing.F) {
	f.Add("2", int64(1), int64(2), "u", "j", true)
	f.Add("9223372036854775807", int64(1), int64(1), "u", "", false)
	f.Add("9223372036854775808", int64(1), int64(2), "u", "j", false)
	f.Add("-1", int64(0), int64(3), "another", "x", true)
	f.Add("", int64(1), int64(1), "", "j", true)
	f.Fuzz(func(t *testing.T, label string, known, now int64, uid, job string, leaving bool) {
		s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: "project", Name: "a", UID: "u"}}
		s.Status.Run = known
		cluster := &fixed{session: s.DeepCopy(), job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "project", Name: "a-run-1", UID: "j"}}}
		cluster.session.UID, cluster.session.Status.Run = types.UID(uid), now
		if leaving {
			cluster.job.DeletionTimestamp = new(metav1.Now())
		}
		o := &seen{}
		o.world.Session = s
		pod := partial("v1", "Pod")
		pod.Namespace, pod.Name, pod.Labels = "project", "p", map[string]string{v1alpha1.LabelRun: label}
		yes := true
		if job != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "a-run-1", UID: types.UID(job), Controller: &yes}}
		}
		r := &AgenticSessionReconciler{Live: cluster}
		behind, err := r.behind(t.Context(), o, pod)
		if err != nil {
			t.Fatal(err)
		}
		run, wrong := strconv.ParseInt(label, 10, 64)
		later := wrong == nil && run > known && uid == "u" && now >= run
		kept := job == "j" && !leaving
		if behind != (later || kept) {
			t.Errorf("behind is %t: label %q, known run %d, run %d of %q, Job %q, leaving %t", behind, label, known, now, uid, job, leaving)
		}
	})
}
