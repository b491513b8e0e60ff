package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// consumeRequests removes the request that the phase honours from the annotations. Each removal
// is made only if the annotation still says what this pass has seen: a newer request stays.
func (r *AgenticSessionReconciler) consumeRequests(ctx context.Context, o *seen) error {
	var keys []string
	timeless := false
	switch asked := o.world.Session.Annotations[v1alpha1.AnnotationDesiredPhase]; {
	case o.world.Honoured():
		keys = append(keys, v1alpha1.AnnotationDesiredPhase)
		times := requestTimes(o.world.Session)
		keys = append(keys, times...)
		timeless = o.world.Session.Annotations[times[0]] == ""
	case asked != "" && session.Request(o.world.Session) == "":
		// Left there, it would be in the way of the next request, and nobody would know why nothing
		// happened.
		keys = append(keys, v1alpha1.AnnotationDesiredPhase)
		r.Events.Eventf(o.world.Session, nil, corev1.EventTypeWarning, v1alpha1.ReasonUnknownRequest, "RemoveRequest",
			"%s=%s asks for nothing: it must be %s or %s; it was removed", v1alpha1.AnnotationDesiredPhase, short(asked), v1alpha1.DesiredRunning, v1alpha1.DesiredStopped)
	}
	if o.promptForced() {
		keys = append(keys, v1alpha1.AnnotationForceExecutePrompt)
	}
	return r.removeAnnotations(ctx, o, keys, timeless)
}

// promptForced says that the run in progress was told to use the prompt again, so that the
// annotation has done its work.
func (o *seen) promptForced() bool {
	job := o.world.Job
	return job != nil && o.world.Phase() == v1alpha1.PhaseCreating &&
		job.Annotations[v1alpha1.AnnotationForceExecutePrompt] == "true"
}

// requestTimes are the times that go with the request: its own, and that of the request before, which it
// overtook. A later one announces the next request.
func requestTimes(s *v1alpha1.AgenticSession) []string {
	own, other := v1alpha1.AnnotationStopRequestedAt, v1alpha1.AnnotationStartRequestedAt
	if s.Annotations[v1alpha1.AnnotationDesiredPhase] == v1alpha1.DesiredRunning {
		own, other = other, own
	}
	asked, err := time.Parse(time.RFC3339, s.Annotations[own])
	before, otherErr := time.Parse(time.RFC3339, s.Annotations[other])
	if err == nil && otherErr == nil && before.Before(asked) {
		return []string{own, other}
	}
	return []string{own}
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

// removeAnnotations removes what still says what this pass has seen. Exactly means that nothing else that
// matters may have changed either: a request without a time reads like the next one. Others may write to the
// session all the time, so that is tried again under the version that is there now.
func (r *AgenticSessionReconciler) removeAnnotations(ctx context.Context, o *seen, keys []string, exactly bool) error {
	s := o.world.Session
	for try := 1; ; try++ {
		patch := removal(s, keys, exactly)
		if len(patch) == 0 {
			return nil
		}
		data, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("encoding the removal of a request: %w", err)
		}
		changed := s.DeepCopy()
		err = r.Client.Patch(ctx, changed, client.RawPatch(types.JSONPatchType, data))
		switch {
		case err == nil:
			o.take(changed)
			return nil
		case !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return fmt.Errorf("removing the request that was carried out: %w", err)
		case !exactly || try == writesOfAPass:
			return nil // the annotation says something else by now; the event of that makes the next pass
		}
		now := &v1alpha1.AgenticSession{}
		if found, err := lookup(ctx, r.Live, client.ObjectKeyFromObject(s), now); err != nil || !found || !session.Unchanged(s, now) {
			return err
		}
		s = now
	}
}

// removal is the patch that removes annotations as they are.
func removal(s *v1alpha1.AgenticSession, keys []string, exactly bool) []operation {
	var patch []operation
	for _, key := range keys {
		value, there := s.Annotations[key]
		if !there {
			continue
		}
		path := "/metadata/annotations/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
		patch = append(patch, operation{"test", path, value}, operation{"remove", path, ""})
	}
	if len(patch) == 0 {
		return nil
	}
	patch = append(patch, operation{"test", "/metadata/uid", string(s.UID)})
	if exactly {
		patch = append(patch, operation{"test", "/metadata/resourceVersion", s.ResourceVersion})
	}
	return patch
}

// take goes on with the session as the API server has it after a write of ours to its metadata. It
// does not where another operator has moved the session meanwhile, and says so: what was observed of
// the run belongs to the status as it was. Written under the version that was read, a status of this
// pass is refused then, and the next pass begins anew.
func (o *seen) take(changed *v1alpha1.AgenticSession) bool {
	was, is := &o.world.Session.Status, &changed.Status
	if was.Phase != is.Phase || was.Run != is.Run || was.JobUID != is.JobUID {
		return false
	}
	o.world.Session = changed
	o.plan.Session = changed
	return true
}

// introduce names the token Secret and the identity of the runner in the session's annotations, as
// the platform's backend accepts a runner by them, and marks that a run has begun: before its Job is
// made, so that a backup that has nothing of the run has that.
// It returns the session as it is then.
func (r *AgenticSessionReconciler) introduce(ctx context.Context, s *v1alpha1.AgenticSession) (*v1alpha1.AgenticSession, error) {
	want := map[string]string{
		v1alpha1.AnnotationRunnerTokenSecret:    workload.TokenSecretName(s.Name),
		v1alpha1.AnnotationRunnerServiceAccount: workload.ServiceAccountName(s.Name),
		v1alpha1.AnnotationRunOf:                session.RunOf(s),
	}
	changed := s.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	maps.Copy(changed.Annotations, want)
	if maps.Equal(changed.Annotations, s.Annotations) {
		return s, nil
	}
	// With the UID, so that it is refused where another session has the name by now, which would be
	// taken for a restored one.
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.UID, "annotations": want}})
	if err != nil {
		return s, fmt.Errorf("encoding the annotations of a run: %w", err)
	}
	if err := r.Client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, data)); err != nil {
		return s, fmt.Errorf("naming the runner's identity in the session's annotations: %w", err)
	}
	return changed, nil
}

// remember says on an ended session that it has run, so that it is known if it is restored from a backup. One
// that was is itself from then on. A request that the backup held is dropped: it was carried out, or
// overtaken, in the life that the backup is from.
func (r *AgenticSessionReconciler) remember(ctx context.Context, o *seen) error {
	if !o.world.Unmarked() {
		return nil
	}
	s := o.world.Session
	changed := s.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[v1alpha1.AnnotationRunOf] = session.RunOf(s)
	asked := ""
	if o.world.Foreign() {
		asked = s.Annotations[v1alpha1.AnnotationDesiredPhase]
		for _, key := range []string{v1alpha1.AnnotationDesiredPhase, v1alpha1.AnnotationStartRequestedAt, v1alpha1.AnnotationStopRequestedAt} {
			delete(changed.Annotations, key)
		}
	}
	// Under the version that was read, so that no newer request is dropped with the old one.
	patch := client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Patch(ctx, changed, patch); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the event of the change makes the next pass
	case err != nil:
		return fmt.Errorf("marking that the session has run: %w", err)
	}
	if asked != "" {
		r.Events.Eventf(s, nil, corev1.EventTypeWarning, v1alpha1.ReasonRestored, "RemoveRequest",
			"%s=%s was there when the session was restored and asks for nothing; it was removed: ask again if it was meant", v1alpha1.AnnotationDesiredPhase, short(asked))
	}
	o.take(changed)
	return nil
}
