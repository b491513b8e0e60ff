package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	r := &results{}
	for _, perSecond := range []float64{40, 10, 20} {
		r.add("burst", "plain client", 300, map[string]float64{"per_s": perSecond})
		r.add("burst", "operator", 300, map[string]float64{"per_s": perSecond / 2, "requests": 14})
	}
	table := r.table()
	for _, wanted := range []string{
		"| burst | plain client | 300 | 3 | | 20.00 |",
		"| burst | operator | 300 | 3 | | 10.00 |",
		"In scenario burst the operator brings 0.50 of the sessions a second of the plain client.",
	} {
		if !strings.Contains(table, wanted) {
			t.Errorf("the table lacks %q:\n%s", wanted, table)
		}
	}
	if strings.Contains(table, "of the bare Jobs") {
		t.Error("the table compares with what was not measured")
	}
	folder := t.TempDir()
	if err := r.write(folder); err != nil {
		t.Fatal(err)
	}
	if err := r.plot(filepath.Join(folder, "bench.svg")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bench.json", "bench.md", "bench.svg"} {
		if content, err := os.ReadFile(filepath.Join(folder, name)); err != nil || len(content) < 100 {
			t.Errorf("%s has %d bytes (%v)", name, len(content), err)
		}
	}
}

func TestArrivals(t *testing.T) {
	began := time.Now()
	seen := &times{created: map[string]time.Time{}, reached: map[string]time.Time{}}
	for i := range 100 {
		name := strings.Repeat("x", i+1)
		seen.created[name] = began
		seen.reached[name] = began.Add(time.Duration(i+1) * 100 * time.Millisecond)
	}
	for name, want := range map[string]float64{"all_s": 10, "per_s": 10, "p50_s": 5.1, "p95_s": 9.6, "p99_s": 10} {
		if got := arrivals(seen)[name]; got < want-0.001 || got > want+0.001 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
