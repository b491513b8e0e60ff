package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/apply"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

func TestErrorType(t *testing.T) {
	sessions := schema.GroupResource{Group: "vteam.ambient-code", Resource: "agenticsessions"}
	for want, err := range map[string]error{
		metrics.ErrorBlocked:   errors.Join(errors.New("first"), &apply.Blocked{}),
		metrics.ErrorToken:     fmt.Errorf("%w: no", errToken),
		metrics.ErrorRunner:    fmt.Errorf("%w: no", errRunner),
		metrics.ErrorTimeout:   fmt.Errorf("reading: %w", context.DeadlineExceeded),
		metrics.ErrorConflict:  fmt.Errorf("writing: %w", apierrors.NewConflict(sessions, "a", errors.New("it changed"))),
		metrics.ErrorForbidden: fmt.Errorf("writing: %w", apierrors.NewForbidden(sessions, "a", errors.New("no"))),
		metrics.Other:          apierrors.NewInternalError(errors.New("broken")),
	} {
		if got := errorType(fmt.Errorf("a pass: %w", err)); got != want {
			t.Errorf("%v is of type %s, want %s", err, got, want)
		}
	}
}

func TestSessionsAreCountedInPlace(t *testing.T) {
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	stored := map[*v1alpha1.AgenticSession]bool{}
	for i := range 3 {
		s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: "p", Name: fmt.Sprint(i)}}
		stored[s] = true
		if err := store.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	for s := range inStore(store) {
		if !stored[s] {
			t.Errorf("session %s is a copy", s.Name)
		}
		delete(stored, s)
	}
	if len(stored) > 0 {
		t.Errorf("%d were left out", len(stored))
	}
}
