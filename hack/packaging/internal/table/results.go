package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// notRun is the result of what needs a cluster and has not been run on one.
const notRun = "not run: make e2e-olm runs it"

// Checks runs every check that needs no cluster, and reads what the last run on a cluster left.
func Checks(ctx context.Context, root string, flags ...string) ([]Section, error) {
	args := append([]string{"test", "-json"}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./internal/checks")...)
	cmd.Dir = filepath.Join(root, "hack", "packaging")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	// It fails where a check does, and has told all results then.
	failed := cmd.Run()
	rows, err := checkRows(&out)
	if err != nil || len(rows) == 0 {
		return nil, errors.Join(errors.New("the checks of the bundle did not run: "+strings.TrimSpace(problems.String())), err, failed)
	}
	pods, err := scorecardRows(root)
	if err != nil {
		return nil, err
	}
	sessions, err := upgrades(root)
	if err != nil {
		return nil, err
	}
	return []Section{{"Validators and checks of files", rows}, {"Scorecard on a cluster", pods}, sessions}, nil
}

// checkRows are the results of a test run: one for each check that has none below it, of the bundle
// being worked on ("next") and of every released one.
func checkRows(events io.Reader) (rows []Row, err error) {
	results := map[string]string{}
	var order []string
	for decoder := json.NewDecoder(events); ; {
		var e struct{ Action, Test string }
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the results of the checks: %w", err)
		}
		if e.Test == "" {
			continue
		}
		switch e.Action {
		case "run":
			order = append(order, e.Test)
			if i := strings.LastIndex(e.Test, "/"); i >= 0 {
				delete(results, e.Test[:i])
			}
			results[e.Test] = "no result"
		case "pass", "fail", "skip":
			if _, leaf := results[e.Test]; leaf || e.Action == "fail" {
				results[e.Test] = e.Action
			}
		}
	}
	for _, name := range order {
		if result, found := results[name]; found {
			rows = append(rows, Row{strings.TrimPrefix(name, "Test"), result})
		}
	}
	return rows, nil
}

// scorecardRows are the tests that the bundle lists, with what the last run as pods says of each.
func scorecardRows(root string) ([]Row, error) {
	tests, err := scorecardTests(root)
	if err != nil {
		return nil, err
	}
	var report struct {
		Items []struct {
			Spec   scorecardTest `json:"spec"`
			Status struct {
				Results []struct {
					State       string   `json:"state"`
					Suggestions []string `json:"suggestions"`
				} `json:"results"`
			} `json:"status"`
		} `json:"items"`
	}
	content, err := os.ReadFile(filepath.Join(root, "bin", "scorecard.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading scorecard's report: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal(content, &report); err != nil {
			return nil, fmt.Errorf("reading scorecard's report: %w", err)
		}
	}
	states := map[string]string{}
	for _, item := range report.Items {
		for _, r := range item.Status.Results {
			states[item.Spec.Image+item.Spec.Labels["test"]] = fmt.Sprintf("%s, %d suggestions", r.State, len(r.Suggestions))
		}
	}
	rows := make([]Row, 0, len(tests))
	for _, t := range tests {
		state, found := states[t.Image+t.Labels["test"]]
		if !found {
			state = notRun
		}
		rows = append(rows, Row{t.Labels["suite"] + " " + t.Labels["test"], state})
	}
	return rows, nil
}
