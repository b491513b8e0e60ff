//go:build e2e

package olm

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"
)

// hop is what an upgrade did, as the table of all checks shows it.
type hop struct {
	From, To string
	// Took is how long OLM needed, LeaderGap how long nobody led.
	Took, LeaderGap string
	Sessions        []fate
}

// fate is a session before and after an upgrade.
type fate struct{ Name, Before, After string }

// hops are the upgrades of this run.
var hops []hop

// note takes an upgrade into the report, which is of the last run that got so far.
func note(t *testing.T, from, to string, took, gap time.Duration, before, after map[string]picture) {
	t.Helper()
	h := hop{From: from, To: to, Took: took.Round(time.Second).String(), LeaderGap: gap.Round(10 * time.Millisecond).String()}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		h.Sessions = append(h.Sessions, fate{name, before[name].String(), after[name].String()})
	}
	hops = append(hops, h)
	content, err := json.MarshalIndent(hops, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cluster.Tool("upgrades.json"), content, 0o644); err != nil {
		t.Fatal(err)
	}
}
