package integration

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/workload"
)

// fitName is what README and the API say of the names of sessions.
var fitName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$`)

// TestCase69Names: a session of whatever name that an object can have runs, or is refused with the rule
// that says why, and what is refused leaves nothing behind.
func TestCase69Names(t *testing.T) {
	p := share(t)
	names := []string{"Upper", "a_b", "-a", "a-", ".a", "a..b", "a.b", "1.2.3.4", "trigger", "trigger-1", "default", "0", "-", ""}
	for _, length := range []int{1, 2, 44, 51, 52, 53, 54, 55, 57, 58, 63, 64, 200, 253, 254} {
		names = append(names, strings.Repeat("a", length), strings.Repeat("7", length), "x"+strings.Repeat("-", max(0, length-2))+"9")
	}
	// The same but for the last letter: what is cut short would be one name for both.
	names = append(names, strings.Repeat("p", 51)+"1", strings.Repeat("p", 51)+"2", "p-run-1", "p-run-1-run-1", "p", "p-role", "p-rb")
	random := rand.New(rand.NewPCG(69, 1))
	for range 150 {
		name := make([]byte, 1+random.IntN(60))
		for i := range name {
			name[i] = "abz019--."[random.IntN(9)]
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		err := strictly(p.ctx, "AgenticSession", p.name, name, map[string]any{"initialPrompt": "hang"}, client.DryRunAll)
		switch fit := fitName.MatchString(name) && name != "trigger"; {
		case fit && err != nil:
			t.Errorf("the name %q is refused: %v", name, err)
		case !fit && err == nil:
			t.Errorf("the name %q is accepted", name)
		case !fit && !saysWhy(err.Error()):
			t.Errorf("the refusal of the name %q does not say what to do: %v", name, err)
		}
	}
	var sessions []*session
	for _, name := range []string{
		"0", "7777777", strings.Repeat("7", 52), strings.Repeat("a", 51), strings.Repeat("p", 51) + "1", strings.Repeat("p", 51) + "2",
		"x" + strings.Repeat("-", 50) + "9", "p", "p-run-1", "p-run-1-run-1", "p-role", "p-rb", "trigger-1",
	} {
		sessions = append(sessions, p.session(name, "hang"))
	}
	for _, s := range sessions {
		s.reaches(running)
		s.ranOnce()
		if endpoint := s.pod().Labels["agentic-session"]; endpoint != s.name {
			t.Errorf("the pod of session %s is labelled as that of %s", s.name, endpoint)
		}
		s.does("exit 0")
	}
	for _, s := range sessions {
		s.reaches(completed)
		s.expectHistory(pending, creating, running, completed)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := suite.admin.List(p.ctx, claims, client.InNamespace(p.name)); err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims.Items {
		if !slices.ContainsFunc(sessions, func(s *session) bool { return claim.Name == workload.WorkspaceName(s.name) }) {
			t.Errorf("volume claim %s is of no session that was accepted", claim.Name)
		}
	}
}

// saysWhy says that a refusal is one of ours, or the API server's own about names of any object.
func saysWhy(refusal string) bool {
	for _, part := range []string{"choose a shorter name without dots", "choose another name", "RFC 1123 subdomain", "name or generateName is required", "must be no more than 253"} {
		if strings.Contains(refusal, part) {
			return true
		}
	}
	return false
}
