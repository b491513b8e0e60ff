package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// summary tells what was done and what came of it, as tables.
func (c *chaos) summary() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.replicas {
		r.proxy.mu.Lock()
		for name, n := range r.proxy.failed {
			c.injected[name] += n
		}
		r.proxy.mu.Unlock()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n%d rounds, seeds %d to %d, %d sessions of good users\n", c.rounds, c.seed, c.seed+uint64(c.rounds)-1, c.brought)
	processes := 0
	for _, r := range c.replicas {
		processes += len(r.logs)
	}
	fmt.Fprintf(&text, "%d processes of the operator\n\n| injected | times |\n|---|---|\n", processes)
	for _, name := range slices.Sorted(maps.Keys(c.injected)) {
		fmt.Fprintf(&text, "| %s | %d |\n", name, c.injected[name])
	}
	fmt.Fprint(&text, "\n| what must hold | judged and right |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(c.passed)) {
		fmt.Fprintf(&text, "| %s | %d |\n", name, c.passed[name])
	}
	fmt.Fprint(&text, "\n| measured | median | most | n |\n|---|---|---|---|\n")
	row := func(what string, times []time.Duration) {
		if len(times) > 0 {
			fmt.Fprintf(&text, "| %s | %.2f s | %.2f s | %d |\n", what, median(times).Seconds(), slices.Max(times).Seconds(), len(times))
		}
	}
	row("from the creation of a good session to its start, while things are broken", c.starts)
	row("hand-over when the leader is stopped", c.stopped)
	row(fmt.Sprintf("hand-over when the leader is killed (it holds its lock for %s)", lease), c.crashed)
	fmt.Fprintf(&text, "\nviolations: %d\n", len(c.violations))
	return text.String()
}
