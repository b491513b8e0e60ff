// Package checks holds the tests themselves. Each works on a cluster that the operator is installed
// on, in a namespace of its own that it removes in the end.
package checks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/scorecard/internal/example"
	"github.com/ambient-code/agentic-operator/test/scorecard/internal/operator"
	"github.com/ambient-code/agentic-operator/test/scorecard/internal/report"
	"github.com/ambient-code/agentic-operator/test/scorecard/internal/testproject"
)

// Test looks at one thing. What it finds goes to the report; an error is what kept it from looking.
type Test func(context.Context, *Scene) error

// All tests by the name that scorecard's configuration has.
var All = map[string]Test{
	"session-completes":        sessionCompletes,
	"conditions-and-metrics":   conditionsAndMetrics,
	"sessions-survive-upgrade": sessionsSurviveUpgrade,
}

// Scene is what a test works with.
type Scene struct {
	*report.Report
	// Bundle is the one under test, Operator what it installed.
	Bundle   *example.Bundle
	Operator *operator.Operator
	// Project is the test's own namespace, Home the one that its pod is in.
	Project *testproject.Project
	Home    string

	config *rest.Config
	client client.Client
}

// Run runs a test on the bundle in a folder.
func Run(ctx context.Context, test Test, bundle string, told *report.Report) (err error) {
	s := &Scene{Report: told, Home: os.Getenv("SCORECARD_NAMESPACE")}
	if s.Bundle, err = example.Read(bundle); err != nil {
		return err
	}
	if err := s.connect(); err != nil {
		return err
	}
	if s.Operator, err = operator.Find(ctx, s.client, s.Bundle.Deployment); err != nil {
		return err
	}
	var credentials bool
	s.Project, credentials, err = testproject.Make(ctx, s.client, s.Home, "test")
	if s.Project != nil {
		// Also when our time is up, or scorecard removes the pod.
		defer func() { err = errors.Join(err, s.Project.Remove(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return err
	}
	if !credentials {
		s.Note("namespace %s has no Secret ambient-runner-secrets to copy: runners get a made-up key", s.Home)
	}
	return test(ctx, s)
}

// connect uses the ServiceAccount of the pod, or the kubeconfig outside of one.
func (s *Scene) connect() error {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	var err error
	if s.config, err = loader.ClientConfig(); err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	if s.Home == "" {
		if s.Home, _, err = loader.Namespace(); err != nil {
			return fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
		}
	}
	// Warnings would go to the standard error, and so into the result.
	s.config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, eventsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering the kinds: %w", err)
		}
	}
	if s.client, err = client.New(s.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	return nil
}

// example is the bundle's session, adapted to the cluster as little as it needs.
func (s *Scene) example(ctx context.Context) *v1alpha1.AgenticSession {
	session := s.Bundle.Session.DeepCopy()
	if left := example.Within(ctx, session); len(left) > 0 {
		s.Note("the example goes without repositories that cannot be reached from here: %s", strings.Join(left, ", "))
	}
	return session
}

// waiting is the example as a session that goes on until it is stopped.
func (s *Scene) waiting(ctx context.Context, name string) *v1alpha1.AgenticSession {
	session := s.example(ctx)
	session.Name = name
	example.Waiting(session)
	s.Note("session %s is the example with another prompt, interactive, so that it goes on until it is stopped", name)
	return session
}
