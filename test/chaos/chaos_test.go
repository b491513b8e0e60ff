//go:build e2e

package main

import "testing"

// TestChaos is the short form: one round, from a seed of its own each time.
func TestChaos(t *testing.T) {
	if err := run(t.Context(), short()); err != nil {
		t.Fatal(err)
	}
}
