package monitoring

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCase65OneKeyIsSet: every other byte stays, comments and order too, and undoing gives the text
// back as it was.
func TestCase65OneKeyIsSet(t *testing.T) {
	const rest = "# retention by order of Kim\nprometheusK8s:\n  retention: 24h   # not more\n  volumeClaimTemplate: {spec: {resources: {requests: {storage: 40Gi}}}}\n\n\ntelemeterClient:\n  enabled: 'no'\n"
	for _, c := range []struct{ name, text, want, was, undone string }{
		{"nothing", "", "enableUserWorkload: true\n", WasAbsent, ""},
		{"comments only", "# none\n", "# none\nenableUserWorkload: true\n", WasAbsent, "# none\n"},
		{"a document mark", "---\na: 1\n", "---\na: 1\nenableUserWorkload: true\n", WasAbsent, "---\na: 1\n"},
		{"other keys", rest, rest + "enableUserWorkload: true\n", WasAbsent, rest},
		{"no line end", "a: 1", "a: 1\nenableUserWorkload: true\n", WasAbsent, "a: 1\n"},
		{"carriage returns", "a: 1\r\nb: 2\r\n", "a: 1\r\nb: 2\r\nenableUserWorkload: true\n", WasAbsent, "a: 1\r\nb: 2\r\n"},
		{"a nested key of the name", "a:\n  enableUserWorkload: false\n", "a:\n  enableUserWorkload: false\nenableUserWorkload: true\n", WasAbsent, "a:\n  enableUserWorkload: false\n"},
		{"false first", "enableUserWorkload:   false # later\n" + rest, "enableUserWorkload:   true # later\n" + rest, WasFalse, "enableUserWorkload:   false # later\n" + rest},
		{"false last", rest + "enableUserWorkload: false", rest + "enableUserWorkload: true", WasFalse, rest + "enableUserWorkload: false"},
		{"false in quotes of the key", `"enableUserWorkload": false`, `"enableUserWorkload": true`, WasFalse, `"enableUserWorkload": false`},
		{"false in a flow mapping", "{a: 1, enableUserWorkload: false}\n", "{a: 1, enableUserWorkload: true}\n", WasFalse, "{a: 1, enableUserWorkload: false}\n"},
		{"true", rest + "enableUserWorkload: true\n", rest + "enableUserWorkload: true\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, was, err := EnableUserWorkload(c.text)
			if err != nil || got != c.want || was != c.was {
				t.Fatalf("%q, %q, %v; want %q, %q", got, was, err, c.want, c.was)
			}
			if was == "" {
				return
			}
			if undone, err := UndoUserWorkload(got, was); err != nil || undone != c.undone {
				t.Errorf("undone it is %q, %v; want %q", undone, err, c.undone)
			}
		})
	}
}

func TestCase65WhatIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":             "a: [1\n",
		"a tab":               "a:\n\tb: 1\n",
		"a list":              "- a\n",
		"a word":              "retention\n",
		"a key twice":         "a: 1\na: 2\n",
		"several documents":   "a: 1\n---\nb: 2\n",
		"a flow mapping":      "{a: 1}\n",
		"an open block":       "a: |\n  text",
		"an end mark":         "a: 1\n...\n",
		"neither true or not": "enableUserWorkload: maybe\n",
		"false by reference":  "a: &x false\nenableUserWorkload: *x\n",
	} {
		got, was, err := EnableUserWorkload(text)
		if !errors.Is(err, errUnreadable) || got != "" || was != "" {
			t.Errorf("%s: %q, %q, %v; want a refusal", name, got, was, err)
			continue
		}
		if !strings.Contains(err.Error(), "oc -n openshift-monitoring edit configmap cluster-monitoring-config") {
			t.Errorf("%s: the refusal does not say what to do: %v", name, err)
		}
	}
}

// TestCase65OnlyOursIsUndone: what somebody has changed since is theirs.
func TestCase65OnlyOursIsUndone(t *testing.T) {
	for text, want := range map[string]string{
		"enableUserWorkload: false\nb: 1\n": "enableUserWorkload: false\nb: 1\n",
		"b: 1\n":                            "b: 1\n",
		"new: 1\nenableUserWorkload: true\nb: 2\n": "new: 1\nb: 2\n",
	} {
		if got, err := UndoUserWorkload(text, WasAbsent); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
	if got, err := UndoUserWorkload("{enableUserWorkload: true, b: 1}\n", WasAbsent); err == nil {
		t.Errorf("a line with more in it is removed: %q", got)
	}
}

// TestCase65WordsOfYAML11: OpenShift's monitoring takes them for true and false, and so does the
// operator; undoing gives the word back.
func TestCase65WordsOfYAML11(t *testing.T) {
	for text, want := range map[string]string{
		"enableUserWorkload: yes\n":         "enableUserWorkload: yes\n",
		"enableUserWorkload: On # asked\n":  "enableUserWorkload: On # asked\n",
		"enableUserWorkload: off # later\n": "enableUserWorkload: true # later\n",
		"{enableUserWorkload: No}\n":        "{enableUserWorkload: true}\n",
		"enableUserWorkload: FALSE":         "enableUserWorkload: true",
	} {
		got, was, err := EnableUserWorkload(text)
		if err != nil || got != want || (was == "") != (text == want) {
			t.Errorf("%q becomes %q, %q, %v; want %q", text, got, was, err, want)
			continue
		}
		if back, err := UndoUserWorkload(got, was); was != "" && (err != nil || back != text) {
			t.Errorf("%q is undone to %q, %v", text, back, err)
		}
	}
	for text, want := range map[string]Setting{
		"": SettingBlank, "\n": SettingBlank, "# no\n": SettingAbsent, "a: 1\n": SettingAbsent, "enableUserWorkload:\n": SettingAbsent,
		"enableUserWorkload: no\n": SettingOff, "enableUserWorkload: true\n": SettingOn, "enableUserWorkload: \"yes\"\n": SettingUnreadable,
		"enableUserWorkload: 1\n": SettingUnreadable, "a: [\n": SettingUnreadable, "x: &x {enableUserWorkload: true}\n<<: *x\n": SettingOn,
	} {
		if got := SettingOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestWhatIsSaidOfUserWorkloadMonitoring: the account of it and that of the ServiceMonitor never
// contradict each other, and name a command that fits the configuration as it is.
func TestWhatIsSaidOfUserWorkloadMonitoring(t *testing.T) {
	const edit = "oc -n openshift-monitoring edit configmap cluster-monitoring-config"
	runs := []Prometheus{{Namespace: "openshift-user-workload-monitoring", Name: "user-workload", Namespaces: &metav1.LabelSelector{}, Monitors: &metav1.LabelSelector{}}}
	for name, c := range map[string]struct {
		asked        bool
		known        UserWorkload
		prometheuses []Prometheus
		reason, says string
		missing      bool
	}{
		"no configuration":         {false, UserWorkload{Setting: SettingNoObject}, nil, "Disabled", "oc -n openshift-monitoring create configmap cluster-monitoring-config --from-literal=config.yaml='enableUserWorkload: true'; or let the operator", true},
		"an empty one":             {false, UserWorkload{Setting: SettingBlank}, nil, "Disabled", `oc -n openshift-monitoring patch configmap cluster-monitoring-config --type merge -p '{"data":{"config.yaml":"enableUserWorkload: true\n"}}'`, true},
		"without the key":          {false, UserWorkload{Setting: SettingAbsent}, nil, "Disabled", `add the line "enableUserWorkload: true" to its configuration: ` + edit, true},
		"not read":                 {false, UserWorkload{}, nil, "Disabled", edit, true},
		"off":                      {false, UserWorkload{Setting: SettingOff}, nil, "Disabled", "replace false by true", true},
		"off, and not gone yet":    {false, UserWorkload{Setting: SettingOff}, runs, "Disabled", "replace false by true", true},
		"unreadable":               {false, UserWorkload{Setting: SettingUnreadable}, nil, "Disabled", "mend its configuration", true},
		"switched on by others":    {false, UserWorkload{Setting: SettingOn}, nil, "Starting", "get pods", false},
		"switched on when asked":   {true, UserWorkload{Setting: SettingOn}, nil, "Starting", "get pods", false},
		"taken back":               {true, UserWorkload{Setting: SettingOff, TakenBack: true}, nil, "TakenBack", "replace false by true", true},
		"taken back, not gone yet": {true, UserWorkload{Setting: SettingOff, TakenBack: true}, runs, "TakenBack", "replace false by true", true},
		"all taken away":           {true, UserWorkload{Setting: SettingNoObject, TakenBack: true}, nil, "TakenBack", "create configmap", true},
		"refused":                  {true, UserWorkload{Problem: &Condition{Part: PartUserWorkload, Reason: "Refused", Message: "why", Missing: true}}, nil, "Refused", "why", true},
		"on":                       {true, UserWorkload{Setting: SettingOn}, runs, "Enabled", "is on", false},
	} {
		world := full()
		world.EnableUserWorkload, world.UserWorkload, world.Prometheuses = c.asked, c.known, c.prometheuses
		state := world.Report(world.Objects(), nil)
		for _, condition := range state.Conditions {
			selected := condition.Part == PartSelected
			if selected && c.reason == "Enabled" {
				if condition.Reason != "Selected" {
					t.Errorf("%s: the ServiceMonitor is said to be %+v", name, condition)
				}
				continue
			}
			if selected || condition.Part == PartUserWorkload {
				if condition.Reason != c.reason || condition.Missing != c.missing || !strings.Contains(condition.Message, c.says) {
					t.Errorf("%s: the state says %+v", name, condition)
				}
				if c.asked && strings.Contains(condition.Message, "let the operator do it") {
					t.Errorf("%s: the operator was asked, and the state says %s", name, condition.Message)
				}
			}
		}
	}
}
