package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ambient-code/agentic-operator/test/record"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// chaos is the cluster with the replicas of the operator, and what was found so far.
type chaos struct {
	options
	cluster  *rig.Cluster
	dir      string
	recorder *record.Recorder
	replicas []*replica
	stop     context.CancelFunc
	base     usage

	mu         sync.Mutex
	injected   map[string]int
	violations []string
	passed     map[string]int // judged and found right, by invariant
	keys       []string       // API keys of the projects
	brought    int
	restarts   []time.Time // of the API server or what it rests on
	starts     []time.Duration
	stopped    []time.Duration // hand-overs from a leader that was stopped
	crashed    []time.Duration // and from one that was killed
}

// begin brings up the cluster and two replicas.
func begin(ctx context.Context, o options) (*chaos, error) {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	cluster, err := rig.Up(ctx, rig.Options{
		Name: fmt.Sprintf("chaos-%d", os.Getpid()), Node: rig.NodeSimulated, Audit: true, DieWithUs: true, Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &chaos{options: o, cluster: cluster, dir: dir, stop: stop, injected: map[string]int{}, passed: map[string]int{}}
	if err := c.prepare(ctx, background); err != nil {
		return nil, errors.Join(err, c.end(context.WithoutCancel(ctx), true))
	}
	return c, nil
}

func (c *chaos) prepare(ctx, background context.Context) error {
	c.cluster.Config.WarningHandler = rest.NoWarnings{}
	if err := c.cluster.Install(ctx, nil); err != nil {
		return err
	}
	var err error
	if c.recorder, err = record.Start(background, c.cluster.Client); err != nil {
		return err
	}
	program, err := c.cluster.BuildOperator(ctx, "operator")
	if err != nil {
		return err
	}
	if c.skew {
		if program, err = skewed(ctx, c.cluster, c.dir); err != nil {
			return err
		}
	}
	for _, name := range []string{"first", "second"} {
		r := &replica{name: name, dir: c.dir, through: *c.cluster, ended: make(chan struct{})}
		if r.proxy, err = startProxy(c.cluster.Config, c.seed+uint64(len(c.replicas))); err != nil {
			return err
		}
		r.through.Kubeconfig = filepath.Join(c.dir, name+".kubeconfig")
		r.through.Operator = program
		if err := r.proxy.kubeconfig(c.cluster.Kubeconfig, r.through.Kubeconfig); err != nil {
			return err
		}
		c.replicas = append(c.replicas, r)
		go r.keep(background)
	}
	if _, err := c.leader(ctx); err != nil {
		return err
	}
	c.base, err = c.warm(ctx)
	return err
}

// end removes everything, but not the logs where something is wrong.
func (c *chaos) end(ctx context.Context, keep bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c.stop()
	var failures []error
	for _, r := range c.replicas {
		<-r.ended
		if err := r.proxy.server.Close(); err != nil {
			failures = append(failures, fmt.Errorf("ending the proxy of %s: %w", r.name, err))
		}
	}
	failures = append(failures, c.cluster.Down(ctx))
	if keep {
		fmt.Println("the logs of the operator are in", c.dir)
	} else {
		failures = append(failures, os.RemoveAll(c.dir))
	}
	return errors.Join(failures...)
}

// leader waits for a replica that works, and returns it.
func (c *chaos) leader(ctx context.Context) (*replica, error) {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		for _, r := range c.replicas {
			if r.leads(ctx) {
				return r, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no replica works: see the logs in %s", c.dir)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// alone waits until both replicas answer and only one of them works, and returns that. One that stood
// still believes for seconds that it leads.
func (c *chaos) alone(ctx context.Context) (*replica, error) {
	var leader *replica
	err := insist(ctx, func() error {
		leader = nil
		for _, r := range c.replicas {
			families, err := r.scrape(ctx)
			if err != nil {
				return err
			}
			leads := total(families, leaderMetric, nil) == 1
			if leads && leader != nil {
				return errors.New("both replicas work")
			}
			if leads {
				leader = r
			}
		}
		if leader == nil {
			return errors.New("no replica works")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for one replica that works and one that is ready to: %w; see the logs in %s", err, c.dir)
	}
	return leader, nil
}

// other is the replica that the given one is not.
func (c *chaos) other(r *replica) *replica {
	if c.replicas[0] == r {
		return c.replicas[1]
	}
	return c.replicas[0]
}

// count notes that a fault was injected.
func (c *chaos) count(fault string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.injected[fault]++
}

// violation notes that something did not hold, with what is known of it.
func (c *chaos) violation(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	c.violations = append(c.violations, text)
	fmt.Println("VIOLATION:", text)
}

// holds notes how many things were judged by an invariant and found right.
func (c *chaos) holds(invariant string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed[invariant] += n
}

// insist tries until it succeeds: the API server may be away. It gives up after two minutes.
func insist(ctx context.Context, try func() error) error {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		err := try()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		pause(ctx, 200*time.Millisecond)
	}
}
