package runtimes_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ambient-code/agentic-operator/internal/runtimes"
)

var defaults = runtimes.Defaults{RunnerImage: "registry.example/runner:1", StateSyncImage: "registry.example/state-sync:1"}

// whole is an entry that says all that an entry can say, and more.
const whole = `{
  "id": "other-sdk", "displayName": "Other", "description": "Another", "framework": "other", "provider": "someone",
  "container": {
    "image": "registry.example/other:2", "port": 9000, "env": {"RUNNER_TYPE": "other-sdk", "GREETING": "hello"},
    "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi", "example.com/gpu": "1"}}
  },
  "sandbox": {
    "stateDir": ".other/state", "stateSyncImage": "registry.example/sync:3", "persistence": "s3", "workspaceSize": "1Gi",
    "terminationGracePeriod": 5, "seed": {"cloneRepos": true, "hydrateState": true}
  },
  "auth": {"requiredSecretKeys": ["OTHER_KEY", "OTHER_TOKEN"], "secretKeyLogic": "any", "vertexSupported": false},
  "featureGate": "runner.other-sdk.enabled", "defaultModel": "one", "models": [{"value": "one"}], "tomorrow": 1
}`

const least = `{"id": "least", "container": {"image": "registry.example/least:1"}}`

func look(t *testing.T, text, id string) runtimes.Runtime {
	t.Helper()
	runtime, err := runtimes.Parse(text, defaults).Lookup(id)
	if err != nil {
		t.Fatalf("looking up %s: %v", id, err)
	}
	return runtime
}

func TestWhatAnEntrySays(t *testing.T) {
	want := runtimes.Runtime{
		ID: "other-sdk", Image: "registry.example/other:2", Port: 9000,
		Env: map[string]string{"RUNNER_TYPE": "other-sdk", "GREETING": "hello"},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi"), "example.com/gpu": resource.MustParse("1")},
		},
		StateDir: ".other/state", Persistence: runtimes.S3, WorkspaceSize: resource.MustParse("1Gi"), GracePeriod: 5,
		StateSyncImage: "registry.example/sync:3",
		Seed:           runtimes.Seed{CloneRepos: true, HydrateState: true},
		Auth:           runtimes.Auth{Keys: []string{"OTHER_KEY", "OTHER_TOKEN"}, AnyKey: true, NoVertex: true},
	}
	if got := look(t, "["+whole+"]", "other-sdk"); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// What an entry leaves out is as in the built-in type.
func TestWhatAnEntryLeavesOut(t *testing.T) {
	want := runtimes.Default("registry.example/least:1")
	want.ID, want.StateSyncImage = "least", defaults.StateSyncImage
	for _, entry := range []string{
		least,
		`{"id": "least", "container": {"image": "registry.example/least:1", "port": 0, "env": null, "resources": null}, "sandbox": {"stateDir": "", "persistence": "", "terminationGracePeriod": 0, "seed": {}}, "auth": {"requiredSecretKeys": null, "secretKeyLogic": ""}}`,
	} {
		if got := look(t, "["+entry+"]", "least"); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

func TestAStateThatIsKeptInS3IsBroughtBack(t *testing.T) {
	for seed, want := range map[string]runtimes.Seed{
		``:                                 {HydrateState: true},
		`, "seed": {"cloneRepos": true}`:   {HydrateState: true, CloneRepos: true},
		`, "seed": {"hydrateState":false}`: {},
	} {
		got := look(t, `[{"id": "a", "container": {"image": "i"}, "sandbox": {"persistence": "s3"`+seed+`}}]`, "a").Seed
		if got != want {
			t.Errorf("with%q: %+v, want %+v", seed, got, want)
		}
	}
}

// Where an entry says only a request or only a limit, the built-in figure of the other gives way:
// the API server refuses a request above its limit.
func TestOneOfRequestAndLimit(t *testing.T) {
	for resources, want := range map[string]string{
		`{"limits": {"cpu": "100m", "memory": "64Mi"}}`: "100m 64Mi of 100m 64Mi",
		`{"requests": {"cpu": "4", "memory": "16Gi"}}`:  "4 16Gi of 4 16Gi",
		`{"requests": {"cpu": "1"}}`:                    "1 512Mi of 2 8Gi",
		`{}`:                                            "500m 512Mi of 2 8Gi",
	} {
		r := look(t, `[{"id": "a", "container": {"image": "i", "resources": `+resources+`}}]`, "a").Resources
		got := fmt.Sprintf("%s %s of %s %s", r.Requests.Cpu(), r.Requests.Memory(), r.Limits.Cpu(), r.Limits.Memory())
		if got != want {
			t.Errorf("%s: %s, want %s", resources, got, want)
		}
	}
}

// Each fault is told with its entry, its field and what to do.
func TestProblemsOfAnEntry(t *testing.T) {
	for _, c := range []struct{ entry, field, says string }{
		{`{"id": "a"}`, "container.image", "missing"},
		{`{"id": "a", "container": {"image": ""}}`, "container.image", "missing"},
		{`{"id": "a", "container": {"image": 7}}`, "container.image", "make it text"},
		{`{"id": "a", "container": {"image": "a b"}}`, "container.image", "space"},
		{`{"id": "a", "container": []}`, "container", "make it an object"},
		{`{"id": "a", "container": {"image": "i", "port": 70000}}`, "container.port", "from 1 to 65535"},
		{`{"id": "a", "container": {"image": "i", "port": -1}}`, "container.port", "from 1 to 65535"},
		{`{"id": "a", "container": {"image": "i", "port": "8001"}}`, "container.port", "make it a whole number"},
		{`{"id": "a", "container": {"image": "i", "port": 80.5}}`, "container.port", "make it a whole number"},
		{`{"id": "a", "container": {"image": "i", "env": {"A": 1}}}`, "container.env", "make it an object of texts"},
		{`{"id": "a", "container": {"image": "i", "env": {"A=B": "c"}}}`, "container.env", "rename"},
		{`{"id": "a", "container": {"image": "i", "resources": {"limits": {"cpu": "many"}}}}`, "container.resources.limits.cpu", "is not a quantity"},
		{`{"id": "a", "container": {"image": "i", "resources": {"limits": {"cpu": 2}}}}`, "container.resources.limits.cpu", "in quotes"},
		{`{"id": "a", "container": {"image": "i", "resources": {"requests": {"memory": "-1Gi"}}}}`, "container.resources.requests.memory", "more than 0"},
		{`{"id": "a", "container": {"image": "i", "resources": {"requests": {"ram": "1Gi"}}}}`, "container.resources.requests.ram", "use cpu, memory"},
		{`{"id": "a", "container": {"image": "i", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "1"}}}}`, "container.resources.requests.cpu", "more than the limit"},
		{`{"id": "a", "container": {"image": "i", "resources": {"requests": {"e.com/gpu": "1"}, "limits": {"e.com/gpu": "2"}}}}`, "container.resources.requests.e.com/gpu", "the same"},
		{`{"id": " a", "container": {"image": "i"}}`, "id", "space"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"persistence": "disk"}}`, "sandbox.persistence", "none, pvc or s3"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"workspaceSize": "big"}}`, "sandbox.workspaceSize", "is not a quantity"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"workspaceSize": "0"}}`, "sandbox.workspaceSize", "more than 0"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"terminationGracePeriod": -5}}`, "sandbox.terminationGracePeriod", "number of seconds"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"stateDir": "../up"}}`, "sandbox.stateDir", "relative"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"stateDir": "/etc"}}`, "sandbox.stateDir", "relative"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"stateDir": "vertex/keys"}}`, "sandbox.stateDir", "relative"},
		{`{"id": "a", "container": {"image": "i"}, "sandbox": {"seed": {"cloneRepos": "yes"}}}`, "sandbox.seed.cloneRepos", "true or false"},
		{`{"id": "a", "container": {"image": "i"}, "auth": {"requiredSecretKeys": "KEY"}}`, "auth.requiredSecretKeys", "a list of texts"},
		{`{"id": "a", "container": {"image": "i"}, "auth": {"requiredSecretKeys": ["a b"]}}`, "auth.requiredSecretKeys", "cannot be the key"},
		{`{"id": "a", "container": {"image": "i"}, "auth": {"secretKeyLogic": "some"}}`, "auth.secretKeyLogic", "any or all"},
		{`{"container": {"image": "i"}}`, "id", "missing"},
		{`{"id": 5, "container": {"image": "i"}}`, "id", "make it text"},
		{`"a"`, "", "make it an object"},
		{`null`, "", "make it an object"},
	} {
		problems := runtimes.Parse("["+least+","+c.entry+"]", defaults).Problems()
		if len(problems) == 0 {
			t.Errorf("%s: no problem is seen", c.entry)
			continue
		}
		p := problems[0]
		if p.Entry != 2 || p.Field != c.field || !strings.Contains(p.Message, c.says) {
			t.Errorf("%s: entry %d, field %q: %s; want entry 2, field %q: ...%s...", c.entry, p.Entry, p.Field, p.Message, c.field, c.says)
		}
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	text := `[{"id": "bad", "container": {"image": 1, "port": "x", "resources": {"limits": {"cpu": "?"}}}, "sandbox": {"persistence": "?"}, "auth": {"secretKeyLogic": "?"}}]`
	_, err := runtimes.Parse(text, defaults).Lookup("bad")
	for _, field := range []string{`entry 1 ("bad")`, "container.image", "container.port", "container.resources.limits.cpu", "sandbox.persistence", "auth.secretKeyLogic"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not told: %v", field, err)
		}
	}
}

func TestNoImageForTheStateContainers(t *testing.T) {
	for sandbox, wrong := range map[string]bool{
		`{"persistence": "s3"}`:                                    true,
		`{"seed": {"cloneRepos": true}}`:                           true,
		`{"persistence": "s3", "stateSyncImage": "registry/sync"}`: false,
		`{"persistence": "pvc"}`:                                   false,
	} {
		_, err := runtimes.Parse(`[{"id": "a", "container": {"image": "i"}, "sandbox": `+sandbox+`}]`, runtimes.Defaults{}).Lookup("a")
		if (err != nil) != wrong {
			t.Errorf("%s: %v", sandbox, err)
		}
	}
}

// Case 44: one broken entry does not spoil the others.
func TestCase44OneBrokenEntry(t *testing.T) {
	r := runtimes.Parse("["+whole+`, {"id": "broken", "container": {"image": "i", "port": "?"}}, `+least+"]", defaults)
	for _, id := range []string{"other-sdk", "least"} {
		if _, err := r.Lookup(id); err != nil {
			t.Errorf("%s cannot be used: %v", id, err)
		}
	}
	if got := r.Ports(); !slices.Equal(got, []int32{8001, 9000}) {
		t.Errorf("they serve at %v", got)
	}
	var broken *runtimes.Broken
	if _, err := r.Lookup("broken"); !errors.As(err, &broken) {
		t.Errorf("the broken type: %v", err)
	}
	var unknown *runtimes.Unknown
	if _, err := r.Lookup("nobody"); !errors.As(err, &unknown) || !slices.Equal(unknown.Known, []string{"least", "other-sdk"}) || !strings.Contains(err.Error(), "least, other-sdk") {
		t.Errorf("an unknown type: %v", err)
	}
}

// A type that may be meant by an entry whose name cannot be read is not unknown.
func TestATypeMayBeTheNamelessOne(t *testing.T) {
	r := runtimes.Parse("["+least+`, {"id": 7, "container": {"image": "i"}}]`, defaults)
	var broken *runtimes.Broken
	if _, err := r.Lookup("seven"); !errors.As(err, &broken) {
		t.Errorf("%v", err)
	}
	if _, err := r.Lookup("least"); err != nil {
		t.Errorf("the other entry cannot be used: %v", err)
	}
}

func TestTheSameIDTwice(t *testing.T) {
	_, err := runtimes.Parse("["+least+","+whole+","+least+"]", defaults).Lookup("least")
	if err == nil || !strings.Contains(err.Error(), "entry 1 has the same id") {
		t.Errorf("which of the two is meant? %v", err)
	}
}

func TestARegistryThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		data map[string]string
		says string
	}{
		{nil, "the key agent-registry.json is missing"},
		{map[string]string{"registry.json": "[]"}, "the key agent-registry.json is missing"},
		{map[string]string{runtimes.RegistryKey: ""}, "not a list in JSON"},
		{map[string]string{runtimes.RegistryKey: "[\n{\"id\": \"a\",}\n]"}, "line 2"},
		{map[string]string{runtimes.RegistryKey: "{}"}, "it is object"},
		{map[string]string{runtimes.RegistryKey: "null"}, "make it a list"},
	} {
		r := runtimes.Of(c.data, defaults)
		var broken *runtimes.Broken
		if _, err := r.Lookup(runtimes.DefaultID); !errors.As(err, &broken) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want a broken registry: %s", c.data, err, c.says)
		}
		if len(r.Known()) != 0 || len(r.Problems()) != 1 {
			t.Errorf("%v: knows %v, problems %v", c.data, r.Known(), r.Problems())
		}
	}
}

// A registry without the type that sessions have by default has no silent default either.
// What a registry lacks altogether is its own fault, not that of a session: nobody could do better.
func TestWhatARegistryLacks(t *testing.T) {
	const good = `{"id": "good", "container": {"image": "x"}}`
	for text, row := range map[string]struct{ id, says string }{
		`[]`:                 {runtimes.DefaultID, "lists no runner type: add one"},
		`[ ]`:                {"other", "lists no runner type: add one"},
		`[{"id": "broken"}]`: {"other", "entry 1 (\"broken\")"},
		`[` + good + `]`:     {runtimes.DefaultID, "is not listed: add it, or have the session pick one of good with RUNNER_TYPE"},
	} {
		var broken *runtimes.Broken
		if _, err := runtimes.Parse(text, defaults).Lookup(row.id); !errors.As(err, &broken) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s in %s: %v, want a fault of the registry that says %s", row.id, text, err, row.says)
		}
	}
	var unknown *runtimes.Unknown
	if _, err := runtimes.Parse(`[`+good+`]`, defaults).Lookup("other"); !errors.As(err, &unknown) {
		t.Errorf("a type that is not listed beside others: %v", err)
	}
}

func TestWithoutARegistry(t *testing.T) {
	r := runtimes.BuiltIn(defaults)
	want := runtimes.Default(defaults.RunnerImage)
	want.StateSyncImage = defaults.StateSyncImage
	if got, err := r.Lookup(runtimes.DefaultID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	var unknown *runtimes.Unknown
	if _, err := r.Lookup("gemini-cli"); !errors.As(err, &unknown) {
		t.Errorf("another type: %v", err)
	}
	if got := fmt.Sprintf("%d %s %s %s", want.Port, want.Persistence, want.WorkspaceSize.String(), want.Resources.Limits.Memory()); got != "8001 pvc 10Gi 8Gi" {
		t.Errorf("the built-in type is %s", got)
	}
}
