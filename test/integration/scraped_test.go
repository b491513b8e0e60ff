package integration

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/internal/metrics"
	"github.com/ambient-code/agentic-operator/test/rig"
)

var keepScrapes = flag.Bool("update", false, "write the scrapes that the alerts are tested with")

// scrapes is where the scrapes are that the alerts are tested with.
var scrapes = filepath.Join(repository, "internal", "observability", "testdata", "scrapes")

// TestCase62ScrapesAreAsTheAlertsKnowThem: a replica that leads and one that waits export the series with
// which the alerts are tested, by name and labels, and no others. When this fails, -update writes them
// anew: look at the difference.
func TestCase62ScrapesAreAsTheAlertsKnowThem(t *testing.T) {
	if legacyWatch() {
		t.Skip("with plain watches sessions are not counted by phase")
	}
	leader := runProcess(t, "leader", "--leader-elect")
	p := newProject(t, nil)
	p.session("done", "exit 0").reaches(completed)
	p.session("going", "hang").reaches(running)
	ended := metrics.SessionsEnded + `{final_phase=%q,namespace="team-a"} %d`
	p.isKept("leader", leader, metrics.Leader+" 1", metrics.Sessions+`{namespace="team-a",phase="Running"} 1`,
		metrics.TokenNextExpiry+" ", fmt.Sprintf(ended, completed, 1))

	standby := runProcess(t, "standby", "--leader-elect")
	p.isKept("standby", standby, metrics.Leader+" 0")

	const failures = 6
	for i := range failures {
		p.session(fmt.Sprintf("fails-%d", i), "exit 1")
	}
	p.isKept("failing", leader, fmt.Sprintf(ended, failure, failures))
}

// isKept waits until a replica exports these lines, and fails unless all that it exports has the form of
// the scrape that is kept under a name.
func (p *project) isKept(name string, replica *rig.Process, awaited ...string) {
	p.t.Helper()
	var lines []string
	p.eventually("the replica has counted", func() error {
		text, err := scraped(replica)
		if err != nil {
			return err
		}
		lines = p.known(text)
		for _, want := range awaited {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
				return fmt.Errorf("it does not export %s", want)
			}
		}
		return nil
	})
	file := filepath.Join(scrapes, name+".txt")
	if *keepScrapes {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	got, want := forms(lines), forms(strings.Split(strings.TrimSpace(string(kept)), "\n"))
	for form := range got {
		if !want[form] {
			p.t.Errorf("%s exports %s, and the alerts are tested without", name, form)
		}
	}
	for form := range want {
		if !got[form] {
			p.t.Errorf("the alerts are tested with %s, which %s does not export", form, name)
		}
	}
}

func scraped(replica *rig.Process) (text []byte, err error) {
	answer, err := http.Get("http://" + replica.Metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	text, err = io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s", answer.Status)
	}
	return text, errors.Join(err, answer.Body.Close())
}

var (
	sample = regexp.MustCompile(`^(\w+)(\{.*\})? \S+$`)
	label  = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
	// chance is what of a line depends on the machine and the build.
	chance = regexp.MustCompile(`\b(host|version|revision)="[^"]*"`)
)

// known are the lines of a scrape that are described: of this project, as if it were called team-a, and
// of the controller of sessions.
func (p *project) known(text []byte) []string {
	var lines []string
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		found := sample.FindStringSubmatch(line)
		if found == nil || !described(found[1]) {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllString(found[2], -1) {
			name, value, _ := strings.Cut(pair, "=")
			labels[name] = strings.Trim(value, `"`)
		}
		namespace, of := labels["namespace"]
		controller, by := labels["controller"]
		if of && namespace != p.name || by && controller != "agenticsession" {
			continue
		}
		line = strings.ReplaceAll(line, fmt.Sprintf("namespace=%q", p.name), `namespace="team-a"`)
		lines = append(lines, chance.ReplaceAllString(line, `$1="any"`))
	}
	return lines
}

// described says that a series is one of a metric that is described.
func described(series string) bool {
	for _, m := range slices.Concat(metrics.Table, metrics.Libraries) {
		rest, is := strings.CutPrefix(series, m.Name)
		if is && (rest == "" || m.Type == metrics.Histogram && slices.Contains([]string{"_bucket", "_sum", "_count"}, rest)) {
			return true
		}
	}
	return false
}

// forms are names and labels of the series of a scrape, without what the labels are.
func forms(lines []string) map[string]bool {
	all := map[string]bool{}
	for _, line := range lines {
		if found := sample.FindStringSubmatch(line); found != nil {
			names := map[string]bool{}
			for _, pair := range label.FindAllStringSubmatch(found[2], -1) {
				names[pair[1]] = true
			}
			all[found[1]+"{"+strings.Join(slices.Sorted(maps.Keys(names)), ",")+"}"] = true
		}
	}
	return all
}
