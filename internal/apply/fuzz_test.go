package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// FuzzRefused reads answers of an API server, or of a webhook in its way, to a write: what is called an
// obstacle has words, what is called final is the object's own fault, and what passes by itself is none.
func FuzzRefused(f *testing.F) {
	for _, reason := range []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonConflict, metav1.StatusReasonNotFound, metav1.StatusReasonUnknown,
		metav1.StatusReasonInternalError, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonUnauthorized, metav1.StatusReasonRequestEntityTooLarge, "?"} {
		for _, code := range []int32{0, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError} {
			f.Add(string(reason), code, `pods "a" is forbidden: exceeded quota: team`, "")
			f.Add(string(reason), code, "%!s(x) %d", string(corev1.NamespaceTerminatingCause))
		}
	}
	f.Fuzz(func(t *testing.T, reason string, code int32, message, cause string) {
		answer := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: metav1.StatusReason(reason), Message: message,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseType(cause)}}}}}
		err := refused("Service", "session-a", answer)
		if !errors.Is(err, answer) {
			t.Errorf("the answer is lost in %v", err)
		}
		var blocked *Blocked
		if !errors.As(err, &blocked) {
			if !strings.Contains(err.Error(), "Service session-a") || !strings.HasSuffix(err.Error(), message) {
				t.Errorf("the answer %q is told as %q", message, err)
			}
			return
		}
		known := func(word v1alpha1.Word) bool { return word.Word == blocked.Reason }
		if !slices.ContainsFunc(v1alpha1.Reasons, known) || blocked.Object != "Service session-a" {
			t.Errorf("%+v is told of %+v", blocked.Obstacle, answer.ErrStatus)
		}
		terminating := cause == string(corev1.NamespaceTerminatingCause)
		if !terminating && !strings.HasSuffix(blocked.Message, message) {
			t.Errorf("the answer %q is told as %q", message, blocked.Message)
		}
		for name, passes := range map[string]func(error) bool{"conflict": apierrors.IsConflict, "internal error": apierrors.IsInternalError, "timeout": apierrors.IsTimeout, "server timeout": apierrors.IsServerTimeout,
			"too many requests": apierrors.IsTooManyRequests, "unavailable": apierrors.IsServiceUnavailable, "unauthorized": apierrors.IsUnauthorized, "not found": apierrors.IsNotFound} {
			// An answer may contradict itself, as those of webhooks can; its reason counts then.
			if passes(answer) && !terminating && !apierrors.IsInvalid(answer) && !apierrors.IsBadRequest(answer) && !apierrors.IsForbidden(answer) {
				t.Errorf("the %s %q, code %d, is an obstacle: %+v", name, reason, code, blocked.Obstacle)
			}
		}
		if blocked.Final && !apierrors.IsInvalid(answer) && !apierrors.IsBadRequest(answer) {
			t.Errorf("%q, code %d, is final", reason, code)
		}
	})
}
