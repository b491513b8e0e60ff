// Package report is the result of one test in the form that "operator-sdk scorecard" reads.
package report

import (
	"fmt"
	"slices"
	"strings"
)

// Status is a TestStatus of scorecard.operatorframework.io/v1alpha3. It is written out here, since the
// library that has it would bring other versions of much that the operator is made of.
type Status struct {
	Results []Result `json:"results"`
}

// Result is a TestResult.
type Result struct {
	Name        string   `json:"name"`
	Log         string   `json:"log,omitempty"`
	State       string   `json:"state"`
	Errors      []string `json:"errors,omitempty"`
	Suggestions []string `json:"suggestions,omitempty"`
}

// Report collects what a test finds. A test without failures has passed.
type Report struct {
	name        string
	notes       []string
	failures    []string
	suggestions []string
}

// New is the report of the test of that name.
func New(name string) *Report { return &Report{name: name} }

// Note tells what was done, for instance how an example was adapted. The same is told once.
func (r *Report) Note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(r.notes, note) {
		r.notes = append(r.notes, note)
	}
}

// Failures is how many there are so far.
func (r *Report) Failures() int { return len(r.failures) }

// Fail tells something that is wrong with the bundle or the operator.
func (r *Report) Fail(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Suggest tells what could not be looked at, and what would help.
func (r *Report) Suggest(format string, args ...any) {
	r.suggestions = append(r.suggestions, fmt.Sprintf(format, args...))
}

// Status is the report as scorecard reads it.
func (r *Report) Status() Status {
	state := "pass"
	if len(r.failures) > 0 {
		state = "fail"
	}
	return Status{Results: []Result{{
		Name: r.name, State: state, Log: strings.Join(r.notes, "\n"), Errors: r.failures, Suggestions: r.suggestions,
	}}}
}
