package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/rig"
)

const (
	// atOnce is how many requests a client of the bench has under way, be it for floors or sessions.
	atOnce = 20
	// patience is how long anything may take at most.
	patience = 20 * time.Minute
)

// bench is the cluster, and what has been measured so far.
type bench struct {
	options
	cluster *rig.Cluster
	// client has no limit of its own.
	client  client.WithWatch
	dir     string
	results results
	// operator is nil while none runs.
	operator *rig.Process
	runs     int
	// crowded says that the sessions of crowd.go are there.
	crowded bool
	// profiles is the address at which the operator serves profiles.
	profiles string
}

// begin brings up a control plane of the bench's own and installs the operator, without running it.
func begin(ctx context.Context, o options) (b *bench, err error) {
	b = &bench{options: o}
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	b.cluster, err = rig.Up(ctx, rig.Options{Name: fmt.Sprintf("bench-%d", os.Getpid()), Node: rig.NodeSimulated, Audit: true, DieWithUs: true, Progress: os.Stdout})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	config := rest.CopyConfig(b.cluster.Config)
	config.QPS = -1
	config.UserAgent = "bench"
	if b.client, err = client.NewWithWatch(config, client.Options{Scheme: b.cluster.Client.Scheme()}); err != nil {
		return nil, errors.Join(fmt.Errorf("making a client: %w", err), b.end(context.WithoutCancel(ctx)))
	}
	if err := b.cluster.Install(ctx, nil); err != nil {
		return nil, errors.Join(err, b.end(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// end ends everything.
func (b *bench) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return errors.Join(b.stopOperator(), b.cluster.Down(ctx), os.RemoveAll(b.dir))
}

// run starts the operator.
func (b *bench) run(ctx context.Context) error {
	b.runs++
	profiles, err := b.profiled()
	if err != nil {
		return err
	}
	b.operator, err = b.cluster.RunOperator(ctx, filepath.Join(b.dir, fmt.Sprintf("operator-%d.log", b.runs)), nil, profiles)
	return err
}

// startOperator runs an operator and waits until it works: a session of its own is Running.
func (b *bench) startOperator(ctx context.Context) error {
	if err := b.run(ctx); err != nil {
		return err
	}
	warm := fmt.Sprintf("warm-%d", b.runs)
	if err := b.makeProject(ctx, warm); err != nil {
		return err
	}
	if _, err := b.untilRunning(ctx, warm, 1); err != nil {
		return err
	}
	return b.remove(ctx, warm)
}

// makeProject makes a project and waits until the operator has it ready: sessions of one that was made a
// moment ago tell first that they wait for it.
func (b *bench) makeProject(ctx context.Context, name string) error {
	if err := b.cluster.Project(ctx, name); err != nil {
		return err
	}
	return b.until(ctx, "project "+name+" is ready", func(ctx context.Context) (bool, error) {
		settings := &v1alpha1.ProjectSettings{}
		err := b.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "projectsettings"}, settings)
		return settings.Status.ObservedGeneration > 0, client.IgnoreNotFound(err)
	})
}

func (b *bench) stopOperator() error {
	if b.operator == nil {
		return nil
	}
	err := b.operator.Stop()
	b.operator = nil
	return err
}

// remove removes a namespace and waits until it is gone with all that it had.
func (b *bench) remove(ctx context.Context, namespace string) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := b.client.Delete(ctx, object); err != nil {
		return fmt.Errorf("removing namespace %s: %w", namespace, err)
	}
	return b.until(ctx, "namespace "+namespace+" is gone", func(ctx context.Context) (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (b *bench) until(ctx context.Context, what string, is func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, is); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// each does something for 0 to n-1, several at a time, and stops at the first error.
func each(n int, do func(i int) error) error {
	next := make(chan int)
	failed := make(chan error, atOnce)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := 0; i < n && err == nil; i++ {
		select {
		case next <- i:
		case err = <-failed:
		}
	}
	close(next)
	workers.Wait()
	close(failed)
	for more := range failed {
		err = errors.Join(err, more)
	}
	return err
}

// session is one whose runner runs until it is told otherwise.
func session(namespace, name, prompt string) *v1alpha1.AgenticSession {
	never := int64(0)
	return &v1alpha1.AgenticSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.AgenticSessionSpec{InitialPrompt: prompt, Timeout: &never, InactivityTimeout: &never},
	}
}
