package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// result is one measurement.
type result struct {
	Scenario string             `json:"scenario"`
	Subject  string             `json:"subject"`
	Sessions int                `json:"sessions"`
	Values   map[string]float64 `json:"values"`
}

type results struct{ all []result }

func (r *results) add(scenario, subject string, sessions int, values map[string]float64) {
	r.all = append(r.all, result{scenario, subject, sessions, values})
	fmt.Printf("%-10s %-28s %5d  %s\n", scenario, subject, sessions, short(values))
}

// columns of the table, with what they are called there.
var columns = [][2]string{
	{"all_s", "all in (s)"}, {"per_s", "a second"}, {"p50_s", "p50 (s)"}, {"p95_s", "p95 (s)"}, {"p99_s", "p99 (s)"}, {"job_s", "Job in (s)"},
	{"requests", "requests"}, {"writes", "writes"}, {"old_requests", "about old ones"}, {"old_writes", "writes about old ones"}, {"cpu_ms", "CPU ms"}, {"server_ms", "server ms"}, {"cpu_cores", "cores"},
	{"peak_mb", "peak MiB"}, {"base_mb", "base MiB"}, {"heap_mb", "heap MiB"}, {"kb_each", "KiB each"}, {"goroutines", "goroutines"},
}

func short(values map[string]float64) string {
	var told []string
	for _, c := range columns {
		if v, has := values[c[0]]; has {
			told = append(told, fmt.Sprintf("%s %.2f", c[1], v))
		}
	}
	return strings.Join(told, ", ")
}

// row is the median of all rounds of a subject.
type row struct {
	result
	rounds int
}

func (r *results) rows() []row {
	var rows []row
	for _, one := range r.all {
		if slices.ContainsFunc(rows, func(known row) bool { return known.Scenario == one.Scenario && known.Subject == one.Subject }) {
			continue
		}
		values := map[string][]float64{}
		rounds := 0
		for _, same := range r.all {
			if same.Scenario == one.Scenario && same.Subject == one.Subject {
				rounds++
				for name, value := range same.Values {
					values[name] = append(values[name], value)
				}
			}
		}
		medians := map[string]float64{}
		for name, all := range values {
			slices.Sort(all)
			medians[name] = all[len(all)/2]
		}
		rows = append(rows, row{result{one.Scenario, one.Subject, one.Sessions, medians}, rounds})
	}
	return rows
}

// table shows medians, and for bursts how much of each floor the operator reaches.
func (r *results) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Medians; requests, writes and CPU are for each session. Measured on %d cores.\n\n", runtime.NumCPU())
	head, line := "| scenario | subject | sessions | rounds |", "|---|---|--:|--:|"
	for _, c := range columns {
		head += " " + c[1] + " |"
		line += "--:|"
	}
	text.WriteString(head + "\n" + line + "\n")
	speed := map[string]map[string]float64{"burst": {}, "large": {}}
	for _, row := range r.rows() {
		fmt.Fprintf(&text, "| %s | %s | %d | %d |", row.Scenario, row.Subject, row.Sessions, row.rounds)
		for _, c := range columns {
			if v, has := row.Values[c[0]]; has {
				fmt.Fprintf(&text, " %.2f |", v)
			} else {
				text.WriteString(" |")
			}
		}
		text.WriteString("\n")
		if _, wanted := speed[row.Scenario]; wanted {
			speed[row.Scenario][row.Subject] = row.Values["per_s"]
		}
	}
	for _, scenario := range []string{"burst", "large"} {
		for _, floor := range []string{"plain client", "bare Jobs"} {
			if is, may := speed[scenario]["operator"], speed[scenario][floor]; is > 0 && may > 0 {
				fmt.Fprintf(&text, "\nIn scenario %s the operator brings %.2f of the sessions a second of the %s.\n", scenario, is/may, floor)
			}
		}
	}
	return text.String()
}

// write writes every measurement as JSON, and the table.
func (r *results) write(folder string) error {
	data, err := json.MarshalIndent(r.all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	for name, content := range map[string][]byte{"bench.json": append(data, '\n'), "bench.md": []byte(r.table())} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	return nil
}

// plot draws sessions a second of all rounds of the bursts, side by side.
func (r *results) plot(path string) error {
	p := plot.New()
	p.Title.Text = "A burst of sessions beside its floors"
	p.Y.Label.Text = "a second"
	p.Y.Min = 0
	var names []string
	for _, subject := range []string{"bare Jobs", "plain client", "operator"} {
		var points plotter.Values
		for _, one := range r.all {
			if one.Scenario == "burst" && one.Subject == subject {
				points = append(points, one.Values["per_s"])
			}
		}
		if len(points) == 0 {
			continue
		}
		box, err := plotter.NewBoxPlot(vg.Points(40), float64(len(names)), points)
		if err != nil {
			return fmt.Errorf("drawing the results: %w", err)
		}
		p.Add(box)
		names = append(names, subject)
	}
	if len(names) == 0 {
		return nil
	}
	p.NominalX(names...)
	if err := p.Save(14*vg.Centimeter, 9*vg.Centimeter, path); err != nil {
		return fmt.Errorf("writing the plot: %w", err)
	}
	return nil
}
