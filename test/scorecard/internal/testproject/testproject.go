// Package testproject makes a managed namespace for one test, follows the sessions in it and removes it
// with all it holds.
package testproject

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

const (
	// runnerSecrets is the Secret that the runners of a project get their credentials from.
	runnerSecrets = "ambient-runner-secrets"
	// interval between two looks at an object, and how long a namespace may take to go.
	interval = time.Second
	removal  = 3 * time.Minute
)

// Project is a namespace of one test.
type Project struct {
	Name string

	client client.Client
}

// Make makes a managed namespace under Pod Security "restricted" with the Secret that its runners
// need: a copy of the Secret of that name in the namespace home, if there is one; else one with a
// made-up key, and credentials is false.
func Make(ctx context.Context, c client.Client, home, purpose string) (p *Project, credentials bool, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "scorecard-" + purpose + "-",
		Labels:       map[string]string{v1alpha1.LabelManaged: "true", "pod-security.kubernetes.io/enforce": "restricted"},
	}}
	secret := &corev1.Secret{Data: map[string][]byte{"ANTHROPIC_API_KEY": []byte("not-a-key")}}
	own := &corev1.Secret{}
	switch err := c.Get(ctx, client.ObjectKey{Namespace: home, Name: runnerSecrets}, own); {
	case err == nil:
		secret.Data, credentials = own.Data, true
	case !apierrors.IsNotFound(err):
		return nil, false, fmt.Errorf("reading Secret %s/%s: %w", home, runnerSecrets, err)
	}
	if err := c.Create(ctx, namespace); err != nil {
		return nil, false, fmt.Errorf("making a namespace for the test: %w", err)
	}
	p = &Project{Name: namespace.Name, client: c}
	secret.Namespace, secret.Name = p.Name, runnerSecrets
	if err := c.Create(ctx, secret); err != nil {
		return p, false, fmt.Errorf("making Secret %s in namespace %s: %w", runnerSecrets, p.Name, err)
	}
	return p, credentials, nil
}

// Remove deletes the namespace and waits until nothing of it is left.
func (p *Project) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
	if err := p.client.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("removing namespace %s: %w", p.Name, err)
	}
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("namespace %s is not gone after %s: %w; its conditions are %+v", p.Name, removal, err, namespace.Status.Conditions)
	}
	return nil
}

// Start creates a session from an example.
func (p *Project) Start(ctx context.Context, example *v1alpha1.AgenticSession) error {
	s := example.DeepCopy()
	s.Namespace = p.Name
	if err := p.client.Create(ctx, s); err != nil {
		return fmt.Errorf("creating session %s: %w", s.Name, err)
	}
	return nil
}

// Ask sets the request of a user on a session.
func (p *Project) Ask(ctx context.Context, name, desired string) error {
	s := &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: p.Name, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationDesiredPhase, desired)
	if err := p.client.Patch(ctx, s, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("asking session %s to be %s: %w", name, desired, err)
	}
	return nil
}

// Reaches waits until a session is in a phase. Any other final phase is an error that says why.
func (p *Project) Reaches(ctx context.Context, name string, phase v1alpha1.Phase) (*v1alpha1.AgenticSession, error) {
	s := &v1alpha1.AgenticSession{}
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: p.Name, Name: name}, s); err != nil {
			return false, err
		}
		if s.Status.Phase != phase && s.Status.Phase.Terminal() {
			return false, fmt.Errorf("it has ended as %s", s.Status.Phase)
		}
		return s.Status.Phase == phase, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until session %s is %s: %w; it is %s: %s", name, phase, err, s.Status.Phase, why(s))
	}
	return s, nil
}

// why is what a session says of itself.
func why(s *v1alpha1.AgenticSession) string {
	for _, kind := range []string{v1alpha1.ConditionFailed, v1alpha1.ConditionReady} {
		for _, c := range s.Status.Conditions {
			if c.Type == kind && (kind == v1alpha1.ConditionReady || c.Status == metav1.ConditionTrue) {
				return c.Reason + ": " + c.Message
			}
		}
	}
	return "it has no conditions"
}

// Apply gives the project the spec of the example of its settings, and returns the settings when the
// operator has taken them over.
func (p *Project) Apply(ctx context.Context, example *v1alpha1.ProjectSettings) (*v1alpha1.ProjectSettings, error) {
	settings := &v1alpha1.ProjectSettings{}
	key := client.ObjectKey{Namespace: p.Name, Name: example.Name}
	applied := false
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		// Every project gets its settings from the operator.
		if err := p.client.Get(ctx, key, settings); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if !applied {
			was := client.MergeFrom(settings.DeepCopy())
			settings.Spec = *example.Spec.DeepCopy()
			applied = true
			return false, p.client.Patch(ctx, settings, was)
		}
		return settings.Status.ObservedGeneration == settings.Generation, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until the operator has taken over ProjectSettings %s: %w", key, err)
	}
	return settings, nil
}

// Observed waits until the operator has seen a generation of a session that goes on running.
func (p *Project) Observed(ctx context.Context, name string, generation int64) error {
	s := &v1alpha1.AgenticSession{}
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKey{Namespace: p.Name, Name: name}, s)
		return s.Status.ObservedGeneration >= generation, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the operator has seen generation %d of session %s: %w; it has seen %d", generation, name, err, s.Status.ObservedGeneration)
	}
	return nil
}
