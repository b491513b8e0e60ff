package integration

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// TestTheMetricsOfTheOperatorAreServed: the operator as a program serves at /metrics all that it
// describes, and what a session gave to count. Without asking for more, it does so in plain HTTP.
func TestTheMetricsOfTheOperatorAreServed(t *testing.T) {
	trouble(t)
	operator := runProcess(t, "served")
	p := newProject(t, nil)
	p.session("counted", "exit 0").reaches(completed)
	p.eventually("the session is counted", func() error {
		text, err := scraped(operator)
		if err != nil {
			return err
		}
		counted := fmt.Sprintf("\n%s{final_phase=\"Completed\",namespace=%q} 1\n", metrics.SessionsEnded, p.name)
		if !bytes.Contains(text, []byte(counted)) {
			return fmt.Errorf("%s is not there", counted)
		}
		return nil
	})
	text, err := scraped(operator)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics.Table {
		if m.Name == metrics.Wired || !counted(m.Name) || m.Name == metrics.TokenNextExpiry {
			continue // not where nothing is wired, without caches, or without a runner
		}
		if !regexp.MustCompile(`(?m)^` + m.Name + `(_count)?(\{| )`).Match(text) {
			t.Errorf("%s is not served", m.Name)
		}
	}
}
