package workload_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambient-code/agentic-operator/internal/project"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// anyName makes a name as Kubernetes takes it for any object, of the kind that is hard to tell apart.
func anyName(random *rand.Rand) string {
	const letters = "aab0-..-9z"
	parts := []string{"-run-1", "-role", "-rb", "session-", "trigger", "ambient-session-", "run"}
	for {
		var name strings.Builder
		for length := 1 + random.IntN(70); name.Len() < length; {
			if random.IntN(4) == 0 {
				name.WriteString(parts[random.IntN(len(parts))])
			} else {
				name.WriteByte(letters[random.IntN(len(letters))])
			}
		}
		if validation.IsDNS1123Subdomain(name.String()) == nil {
			return name.String()
		}
	}
}

// TestCase69EveryNameIsFitOrRefused: whatever name Kubernetes takes, either every object of the session
// can be named after it and is nobody else's, or the session is said not to be runnable.
func TestCase69EveryNameIsFitOrRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(69, 69))
	taken := map[string]string{
		"ServiceAccount " + project.TriggerName: "the project", "Role " + project.TriggerName: "the project", "RoleBinding " + project.TriggerName: "the project",
		"Secret " + workload.DefaultRunnerSecret: "the project", "Secret " + workload.IntegrationsSecret: "the project", "Secret " + workload.VertexSecret: "the project",
	}
	fit, seen := 0, map[string]bool{}
	for range 20_000 {
		name := anyName(random)
		if seen[name] || workload.Problems(named(name)) != nil {
			continue
		}
		fit, seen[name] = fit+1, true
		checkNames(t, name)
		for kind, names := range map[string][]string{
			"ServiceAccount":        {workload.ServiceAccountName(name)},
			"Role":                  {workload.RoleName(name)},
			"RoleBinding":           {workload.RoleBindingName(name)},
			"Secret":                {workload.TokenSecretName(name), workload.StorageSecretName(name)},
			"PersistentVolumeClaim": {workload.WorkspaceName(name)},
			"Service":               {workload.ServiceName(name)},
			"Job":                   {workload.JobName(name, 1), workload.JobName(name, 21), workload.JobName(name, 999_999)},
		} {
			for _, object := range names {
				if by := taken[kind+" "+object]; by != "" {
					t.Errorf("%s %s is of session %s and of %s", kind, object, name, by)
				}
				taken[kind+" "+object] = name
			}
		}
		if of := workload.SessionOfJob(workload.JobName(name, 21)); of != name {
			t.Errorf("Job %s is taken for one of session %s", workload.JobName(name, 21), of)
		}
		if of := workload.SessionOfToken(workload.TokenSecretName(name)); of != name {
			t.Errorf("Secret %s is taken for that of session %s", workload.TokenSecretName(name), of)
		}
	}
	if fit < 1000 {
		t.Errorf("only %d names were fit", fit)
	}
	for _, name := range []string{"trigger", strings.Repeat("a", 53), "a.b"} {
		if workload.Problems(named(name)) == nil {
			t.Errorf("session %s is said to be runnable", name)
		}
	}
}
