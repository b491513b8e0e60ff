package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// measurement is what the operator has used up to a moment.
type measurement struct {
	b    *bench
	mark int64
	cpu  time.Duration
	// server is what the control plane has used.
	server time.Duration
	at     time.Time
}

func (b *bench) measure() (*measurement, error) {
	mark, err := b.mark()
	if err != nil {
		return nil, err
	}
	cpu, err := b.operator.CPU()
	if err != nil {
		return nil, err
	}
	server, err := b.cluster.CPU()
	return &measurement{b, mark, cpu, server, time.Now()}, err
}

// end adds what was used since, for each of n sessions.
func (m *measurement) end(values map[string]float64, n int) error {
	took := time.Since(m.at)
	server, err := m.b.cluster.CPU()
	if err != nil {
		return err
	}
	all, writes, err := m.b.since(m.mark)
	if err != nil {
		return err
	}
	cpu, err := m.b.operator.CPU()
	if err != nil {
		return err
	}
	peak, err := m.b.operator.PeakMemory()
	if err != nil {
		return err
	}
	goroutines, err := m.b.gauge("go_goroutines")
	if err != nil {
		return err
	}
	per := float64(max(n, 1))
	values["requests"] = float64(all.total()) / per
	values["writes"] = float64(writes) / per
	values["cpu_ms"] = float64((cpu - m.cpu).Milliseconds()) / per
	values["server_ms"] = float64((server - m.server).Milliseconds()) / per
	values["cpu_cores"] = (cpu - m.cpu).Seconds() / took.Seconds()
	values["peak_mb"] = float64(peak) / (1 << 20)
	values["goroutines"] = goroutines
	for what, count := range all {
		values["request "+what] = float64(count) / per
	}
	return nil
}

// gauge asks the operator's own metrics for one without labels.
func (b *bench) gauge(name string) (n float64, err error) {
	answer, err := http.Get("http://" + b.operator.Metrics + "/metrics")
	if err != nil {
		return 0, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, name+" "); is {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the operator does not tell its %s", name)
}

// arrivals are the figures of how sessions, or what stands for them, arrived.
func arrivals(t *times) map[string]float64 {
	each, all := t.each()
	slices.Sort(each)
	at := func(share float64) float64 { return each[min(len(each)-1, int(share*float64(len(each))))] }
	return map[string]float64{"all_s": all, "per_s": float64(len(each)) / all, "p50_s": at(0.5), "p95_s": at(0.95), "p99_s": at(0.99)}
}

// profiled is the flag that has the operator serve profiles, at an address that is free.
func (b *bench) profiled() (string, error) {
	addresses, err := rig.FreeAddresses(1)
	if err != nil {
		return "", err
	}
	b.profiles = addresses[0]
	return "--pprof-bind-address=" + addresses[0], nil
}

// takeProfile has a profile of the next half minute written, in the background.
func (b *bench) takeProfile(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.profiles+"/debug/pprof/profile?seconds=20", nil)
	if err != nil {
		return fmt.Errorf("asking for a profile: %w", err)
	}
	go func() {
		if err := save(request, filepath.Join(b.out, "burst.pprof")); err != nil {
			fmt.Fprintln(os.Stderr, "bench: no profile:", err)
		}
	}()
	return nil
}

func save(request *http.Request, path string) (err error) {
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, answer.Body)
	return errors.Join(err, file.Close())
}
