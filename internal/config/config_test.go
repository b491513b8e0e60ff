package config_test

import (
	"errors"
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

// load reads the configuration from words such as "--leader-elect" and "DEV_MODE=true".
func load(words ...string) (*config.Config, error) {
	var args []string
	variables := map[string]string{}
	for _, word := range words {
		if name, value, found := strings.Cut(word, "="); found && !strings.HasPrefix(word, "-") {
			variables[name] = value
		} else {
			args = append(args, word)
		}
	}
	return config.Load(args, func(name string) string { return variables[name] })
}

func TestDefaultsAreTheContracts(t *testing.T) {
	got, err := load()
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		MaxConcurrentReconciles: 10,
		MetricsAddress:          ":8080",
		MetricsCertSecret:       "agentic-operator-metrics-cert",
		HealthAddress:           ":8081",
		PprofAddress:            "0",
		Namespace:               "default",
		BackendNamespace:        "default",
		RunnerImage:             "quay.io/ambient_code/vteam_claude_runner:latest",
		StateSyncImage:          "quay.io/ambient_code/vteam_state_sync:latest",
		S3Endpoint:              "https://s3.amazonaws.com",
		S3Bucket:                "ambient-sessions",
		ImagePullPolicy:         corev1.PullIfNotPresent,
		DefaultInactivity:       24 * time.Hour,
		StartDeadline:           10 * time.Minute,
		FinishedJobTTL:          24 * time.Hour,
		TokenLifetime:           24 * time.Hour,
		UpgradeHoldLimit:        10 * time.Minute,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are\n%+v, want\n%+v", got, want)
	}
}

func TestEverySettingTakesEffect(t *testing.T) {
	group, user := int64(1001), int64(1001)
	for word, want := range map[string]func(*config.Config){
		"--max-concurrent-reconciles=3":           func(c *config.Config) { c.MaxConcurrentReconciles = 3 },
		"MAX_CONCURRENT_RECONCILES=4":             func(c *config.Config) { c.MaxConcurrentReconciles = 4 },
		"--metrics-bind-address=0":                func(c *config.Config) { c.MetricsAddress = "0" },
		"--metrics-secure":                        func(c *config.Config) { c.MetricsSecure = true },
		"--metrics-cert-secret=mine":              func(c *config.Config) { c.MetricsCertSecret = "mine" },
		"--metrics-http2":                         func(c *config.Config) { c.MetricsHTTP2 = true },
		"--pprof-bind-address=127.0.0.1:6060":     func(c *config.Config) { c.PprofAddress = "127.0.0.1:6060" },
		"--health-probe-bind-address=:9":          func(c *config.Config) { c.HealthAddress = ":9" },
		"--leader-elect":                          func(c *config.Config) { c.LeaderElect = true },
		"--legacy-watch":                          func(c *config.Config) { c.LegacyWatch = true },
		"DEV_MODE=true":                           func(c *config.Config) { c.DevMode = true },
		"NAMESPACE=ambient":                       func(c *config.Config) { c.Namespace, c.BackendNamespace = "ambient", "ambient" },
		"WATCH_NAMESPACE= b,a,,b":                 func(c *config.Config) { c.TargetNamespaces = []string{"a", "b"} },
		"BACKEND_NAMESPACE=backend":               func(c *config.Config) { c.BackendNamespace = "backend" },
		"RELATED_IMAGE_RUNNER=example.com/m":      func(c *config.Config) { c.RunnerImage = "example.com/m" },
		"RELATED_IMAGE_STATE_SYNC=example.com/m":  func(c *config.Config) { c.StateSyncImage = "example.com/m" },
		"AMBIENT_CODE_RUNNER_IMAGE=example.com/r": func(c *config.Config) { c.RunnerImage = "example.com/r" },
		"IMAGE_PULL_POLICY=Always":                func(c *config.Config) { c.ImagePullPolicy = corev1.PullAlways },
		"STATE_SYNC_IMAGE=example.com/s":          func(c *config.Config) { c.StateSyncImage = "example.com/s" },
		"STATE_SYNC_USER=1001":                    func(c *config.Config) { c.StateSyncUser = &user },
		"S3_ENDPOINT=http://minio:9000":           func(c *config.Config) { c.S3Endpoint = "http://minio:9000" },
		"S3_BUCKET=b":                             func(c *config.Config) { c.S3Bucket = "b" },
		"POD_FSGROUP=1001":                        func(c *config.Config) { c.FSGroup = &group },
		"DEFAULT_INACTIVITY_TIMEOUT=0":            func(c *config.Config) { c.DefaultInactivity = 0 },
		"CLOUD_ML_REGION=europe-west1":            func(c *config.Config) { c.Vertex.Region = "europe-west1" },
		"ANTHROPIC_VERTEX_PROJECT_ID=p":           func(c *config.Config) { c.Vertex.ProjectID = "p" },
		"GOOGLE_APPLICATION_CREDENTIALS=/c":       func(c *config.Config) { c.Vertex.Credentials = "/c" },
		"HTTP_PROXY=http://p":                     func(c *config.Config) { c.Proxy = []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://p"}} },
		"HTTPS_PROXY=http://p":                    func(c *config.Config) { c.Proxy = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://p"}} },
		"NO_PROXY=.svc":                           func(c *config.Config) { c.Proxy = []corev1.EnvVar{{Name: "NO_PROXY", Value: ".svc"}} },
		"SESSION_START_DEADLINE=60":               func(c *config.Config) { c.StartDeadline = time.Minute },
		"FINISHED_JOB_TTL=5":                      func(c *config.Config) { c.FinishedJobTTL = 5 * time.Second },
		"RUNNER_PLACEMENT=any":                    func(c *config.Config) { c.RunnersAnywhere = true },
		"OPERATOR_CONDITION_NAME=v1":              func(c *config.Config) { c.OperatorCondition = "v1" },
		"UPGRADE_HOLD_LIMIT=0":                    func(c *config.Config) { c.UpgradeHoldLimit = 0 },
		"RUNNER_TOKEN_LIFETIME=600":               func(c *config.Config) { c.TokenLifetime = 10 * time.Minute },
	} {
		got, err := load(word)
		if err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		expected, err := load()
		if err != nil {
			t.Fatal(err)
		}
		if want(expected); !reflect.DeepEqual(got, expected) {
			t.Errorf("%s gives\n%+v, want\n%+v", word, got, expected)
		}
	}
	vertex, err := load("USE_VERTEX=1", "CLOUD_ML_REGION=r", "ANTHROPIC_VERTEX_PROJECT_ID=p", "GOOGLE_APPLICATION_CREDENTIALS=/c")
	if want := (workload.Vertex{Enabled: true, Region: "r", ProjectID: "p", Credentials: "/c"}); err != nil || vertex.Vertex != want {
		t.Errorf("USE_VERTEX=1 gives %+v, %v; want %+v", vertex.Vertex, err, want)
	}
}

func TestTheVariableWinsOverTheFlag(t *testing.T) {
	c, err := load("--max-concurrent-reconciles=3", "MAX_CONCURRENT_RECONCILES=7")
	if err != nil || c.MaxConcurrentReconciles != 7 {
		t.Errorf("%d reconciles, %v; want 7 of the variable", c.MaxConcurrentReconciles, err)
	}
	c, err = load("--max-concurrent-reconciles=3", "MAX_CONCURRENT_RECONCILES=")
	if err != nil || c.MaxConcurrentReconciles != 3 {
		t.Errorf("%d reconciles, %v; want 3 of the flag where the variable is empty", c.MaxConcurrentReconciles, err)
	}
}

// What somebody chose wins over what the installed version was released with, and where nobody chose
// anything the latter holds: the shipped manifests have both variables.
func TestCase57ChosenImagesWinOverReleasedOnes(t *testing.T) {
	for _, c := range []struct {
		released, chosen string
		got              func(*config.Config) string
	}{
		{"RELATED_IMAGE_RUNNER", "AMBIENT_CODE_RUNNER_IMAGE", func(c *config.Config) string { return c.RunnerImage }},
		{"RELATED_IMAGE_STATE_SYNC", "STATE_SYNC_IMAGE", func(c *config.Config) string { return c.StateSyncImage }},
	} {
		for chosen, want := range map[string]string{"chosen.example.com/i:1": "chosen.example.com/i:1", "": "mirror.example.com/i:1"} {
			loaded, err := load(c.released+"=mirror.example.com/i:1", c.chosen+"="+chosen)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.got(loaded); got != want {
				t.Errorf("%s with %s=%q gives %s, want %s", c.released, c.chosen, chosen, got, want)
			}
		}
	}
}

func TestAllProblemsAreToldAtOnceWithTheirRemedy(t *testing.T) {
	bad := map[string]string{
		"RUNNER_PLACEMENT=here":          "must be operator or any",
		"WATCH_NAMESPACE=a b":            `"a b" is none`,
		"MAX_CONCURRENT_RECONCILES=many": "must be a whole number",
		"DEV_MODE=maybe":                 "must be true or false",
		"IMAGE_PULL_POLICY=always":       "must be Always, IfNotPresent or Never",
		"POD_FSGROUP=staff":              "must be the number of a group",
		"DEFAULT_INACTIVITY_TIMEOUT=1h":  "must be a whole number of seconds",
		"SESSION_START_DEADLINE=-1":      "must be a whole number of seconds",
		"FINISHED_JOB_TTL=9999999999":    "must be a whole number of seconds",
		"RUNNER_TOKEN_LIFETIME=60":       "must be 600 seconds or more",
		"USE_VERTEX=yes please":          "must be true or false",
		"MONITORING_LABELS=release=kps,app.kubernetes.io/part-of=mine": "label app.kubernetes.io/part-of is always ambient-code on what the operator makes; leave it out",
	}
	words := []string{"--no-such-flag"}
	for word := range bad {
		words = append(words, word)
	}
	_, err := load(words...)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if !strings.Contains(lines[0], "no-such-flag") {
		t.Errorf("the flag that does not exist is not told first: %s", lines[0])
	}
	for word, remedy := range bad {
		name, value, _ := strings.Cut(word, "=")
		told := slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, name) && strings.Contains(line, value) && strings.Contains(line, remedy)
		})
		if !told {
			t.Errorf("no line says that %s %s:\n%v", word, remedy, err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	for _, c := range []struct {
		words  []string
		remedy string
	}{
		{[]string{"--max-concurrent-reconciles=0"}, "to 1 or more"},
		{[]string{"MAX_CONCURRENT_RECONCILES=0"}, "to 1 or more"},
		{[]string{"USE_VERTEX=true"}, "set CLOUD_ML_REGION, "},
		{[]string{"USE_VERTEX=true", "CLOUD_ML_REGION=r", "ANTHROPIC_VERTEX_PROJECT_ID=p"}, "GOOGLE_APPLICATION_CREDENTIALS"},
		{[]string{"USE_VERTEX=true", "CLOUD_ML_REGION=r", "GOOGLE_APPLICATION_CREDENTIALS=/c"}, "ANTHROPIC_VERTEX_PROJECT_ID"},
		{[]string{"start"}, `"start" is no flag`},
		{[]string{"MONITORING_LABELS=app.kubernetes.io/name=kps"}, "label app.kubernetes.io/name is always agentic-operator"},
		{[]string{"MONITORING_LABELS=app.kubernetes.io/managed-by=Helm"}, "label app.kubernetes.io/managed-by is always"},
		{[]string{"MONITORING_LABELS=openshift.io/user-monitoring=true"}, "label openshift.io/user-monitoring is set by the operator"},
		{[]string{"MONITORING_LABELS=openshift.io/prometheus-rule-evaluation-scope=x"}, "leave it out"},
		{[]string{"POD_FSGROUP=-1"}, "must be the number of a group"},
		{[]string{"--no-such-flag"}, "reading the flags"},
		{[]string{"--leader-elect=sometimes"}, "reading the flags"},
	} {
		if _, err := load(c.words...); err == nil || !strings.Contains(err.Error(), c.remedy) {
			t.Errorf("%v: the error is %v, want one with %q", c.words, err, c.remedy)
		}
	}
	if _, err := load("-h"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: the error is %v, want flag.ErrHelp", err)
	}
}

func TestTheTableOfSettingsIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range config.Settings {
		if s.Meaning == "" || s.Flag == "" && s.Env == "" {
			t.Errorf("setting %+v has no meaning or no name", s)
		}
		for _, name := range []string{s.Flag, s.Env} {
			if name != "" && seen[name] {
				t.Errorf("%s stands twice", name)
			}
			seen[name] = true
		}
	}
	for _, name := range []string{
		"max-concurrent-reconciles", "metrics-bind-address", "health-probe-bind-address", "leader-elect", "legacy-watch",
		"MAX_CONCURRENT_RECONCILES", "DEV_MODE", "NAMESPACE", "BACKEND_NAMESPACE", "AMBIENT_CODE_RUNNER_IMAGE",
		"IMAGE_PULL_POLICY", "POD_FSGROUP", "DEFAULT_INACTIVITY_TIMEOUT", "USE_VERTEX",
		"STATE_SYNC_IMAGE", "S3_ENDPOINT", "S3_BUCKET",
	} {
		if !seen[name] {
			t.Errorf("the contract names %s, the table does not", name)
		}
	}
}

// The documentation is made from the table, so the table must tell what really happens.
func TestTheTableTellsTheRealDefaults(t *testing.T) {
	defaults, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range config.Settings {
		var word string
		switch {
		case s.Default == "":
			continue
		case s.Flag != "":
			word = "--" + s.Flag + "=" + s.Default
		default:
			word = s.Env + "=" + s.Default
		}
		if got, err := load(word); err != nil || !reflect.DeepEqual(got, defaults) {
			t.Errorf("%s is said to be the default, but gives\n%+v, %v; the default is\n%+v", word, got, err, defaults)
		}
	}
}
