package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// The projects of sessions that are there while nothing is asked of them, and of one that comes then.
const (
	finishedProject = "crowd-finished"
	runningProject  = "crowd-running"
	freshProject    = "crowd-fresh"
)

// crowd makes the finished and the running sessions, once, and tells what memory each kind takes.
func (b *bench) crowd(ctx context.Context) error {
	if b.crowded {
		return nil
	}
	if err := b.stopOperator(); err != nil {
		return err
	}
	for _, project := range []string{finishedProject, runningProject, freshProject} {
		if err := b.project(ctx, project); err != nil {
			return err
		}
	}
	base, err := b.live(ctx)
	if err != nil {
		return err
	}
	resident, err := b.settledMemory(ctx)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		project, prompt, subject string
		n                        int
		phase                    v1alpha1.Phase
	}{
		{finishedProject, "sleep 1s\nexit 0", "each finished session", b.finished, v1alpha1.PhaseCompleted},
		{runningProject, "hang", "each running session", b.running, v1alpha1.PhaseRunning},
	} {
		before, err := b.live(ctx)
		if err != nil {
			return err
		}
		if _, err := b.through(ctx, of.project, of.n, of.prompt, of.phase); err != nil {
			return err
		}
		after, err := b.live(ctx)
		if err != nil {
			return err
		}
		b.results.add("memory", of.subject, of.n, map[string]float64{"kb_each": (after - before) / 1024 / float64(of.n), "heap_mb": after / (1 << 20)})
	}
	b.results.add("memory", "base", 0, map[string]float64{"base_mb": float64(resident) / (1 << 20), "heap_mb": base / (1 << 20)})
	b.crowded = true
	return nil
}

// live is how many bytes the operator's objects take once garbage is collected, which asking for a
// profile of the heap can have done. The kernel's account also has what was taken before and not given
// back.
func (b *bench) live(ctx context.Context) (n float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.profiles+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return 0, fmt.Errorf("asking for a collection of garbage: %w", err)
	}
	for range 2 { // the first leaves what has a finalizer
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, fmt.Errorf("asking for a collection of garbage: %w", err)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return 0, fmt.Errorf("asking for a collection of garbage: %w", err)
		}
	}
	return b.gauge("go_memstats_heap_alloc_bytes")
}

// restart ends the operator beside many finished and some running sessions and starts another: how long
// until a new session, which was asked for meanwhile, has its Job and is Running, and what is written
// about the old ones.
func restart(ctx context.Context, b *bench) error {
	if err := b.crowd(ctx); err != nil {
		return err
	}
	if err := b.stopOperator(); err != nil {
		return err
	}
	mark, err := b.mark()
	if err != nil {
		return err
	}
	s := session(freshProject, "after-restart", "hang")
	t := b.follow(ctx, &v1alpha1.AgenticSessionList{}, freshProject, 1, inPhase(v1alpha1.PhaseRunning))
	job := workload.JobName(s.Name, 1)
	made := b.follow(ctx, &batchv1.JobList{}, freshProject, 1, func(object client.Object) (string, bool) { return object.GetName(), object.GetName() == job })
	if err := b.client.Create(ctx, s); err != nil {
		return fmt.Errorf("creating session %s: %w", s.Name, err)
	}
	t.create(s.Name)
	made.create(job)
	if err := b.run(ctx); err != nil {
		return err
	}
	for _, times := range []*times{made, t} {
		if err := times.wait(ctx); err != nil {
			return err
		}
	}
	values := map[string]float64{}
	_, values["job_s"] = made.each()
	_, values["all_s"] = t.each()
	// What is to be written about old sessions would be by then.
	if err := sleep(ctx, 20*time.Second); err != nil {
		return err
	}
	all, writes, err := b.since(mark, finishedProject, runningProject)
	if err != nil {
		return err
	}
	peak, err := b.operator.PeakMemory()
	if err != nil {
		return err
	}
	values["old_requests"], values["old_writes"], values["peak_mb"] = float64(all.total()), float64(writes), float64(peak)/(1<<20)
	b.results.add("restart", fmt.Sprintf("beside %d finished, %d running", b.finished, b.running), 1, values)
	return nil
}

// resting looks at what sessions cost while nothing happens. Requests and writes are all that the operator
// made in that time.
func resting(ctx context.Context, b *bench) error {
	if err := b.crowd(ctx); err != nil {
		return err
	}
	// The last Events and expiries of the sessions that were made are over by then.
	if err := sleep(ctx, 30*time.Second); err != nil {
		return err
	}
	m, err := b.measure()
	if err != nil {
		return err
	}
	if err := sleep(ctx, b.rest); err != nil {
		return err
	}
	memory, err := b.settledMemory(ctx)
	if err != nil {
		return err
	}
	values := map[string]float64{"base_mb": float64(memory) / (1 << 20)}
	if err := m.end(values, 1); err != nil {
		return err
	}
	b.results.add("rest", fmt.Sprintf("%s beside %d finished, %d running", b.rest, b.finished, b.running), b.finished+b.running, values)
	return nil
}

// settledMemory waits until garbage has been collected: the least within a while.
func (b *bench) settledMemory(ctx context.Context) (int64, error) {
	least := int64(0)
	for range 20 {
		if err := sleep(ctx, time.Second); err != nil {
			return 0, err
		}
		now, err := b.operator.Memory()
		if err != nil {
			return 0, err
		}
		if least == 0 || now < least {
			least = now
		}
	}
	return least, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
