package integration

import (
	"strings"
	"testing"
	"time"
)

// TestCase43ReadyWithItsOwnRules: the operator needs nothing to get ready that its rules do not give
// it: no cache waits for a right.
func TestCase43ReadyWithItsOwnRules(t *testing.T) {
	from, began := logged(), time.Now()
	p := newProject(t, alone(t, nil))
	took := time.Since(began)
	t.Logf("ready after %s", took)
	if took > 30*time.Second {
		t.Errorf("the operator was ready only after %s", took)
	}
	p.session("first", "hang").reaches(running)
	for _, line := range complaints(from) {
		if strings.Contains(line, "list") || strings.Contains(line, "forbidden") {
			t.Errorf("a cache was not let in: %s", line)
		}
	}
}
