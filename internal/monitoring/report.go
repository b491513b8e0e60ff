package monitoring

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Condition says of a part of the wiring whether it is there, and why or why not.
type Condition struct {
	Part   Part   `json:"part"`
	Wired  bool   `json:"wired"`
	Reason string `json:"reason"`
	// Message holds the command that mends what is missing.
	Message string `json:"message"`
	// Missing says that somebody should do something about it.
	Missing bool `json:"missing,omitempty"`
}

func condition(part Part, wired bool, reason, message string) Condition {
	return Condition{Part: part, Wired: wired, Reason: reason, Message: message}
}

func missing(part Part, reason, message string) Condition {
	return Condition{Part: part, Reason: reason, Message: message, Missing: true}
}

// State is the account of the wiring that people read.
type State struct {
	Mode       Mode        `json:"mode"`
	Conditions []Condition `json:"conditions"`
}

// Parts are those that have a condition, in the order of the account.
var Parts = []Part{
	PartServiceMonitor, PartSelected, PartScraped, PartUserWorkload, PartCertificate, PartScrapeToken, PartPrometheusRule, PartLoaded,
	PartDashboard, PartQuickStart, PartYAMLSample, PartNetworkPolicy,
}

// Report tells what came of it: objects are those that were wanted, problems what went wrong with a
// part, by its reason and message.
func (w *World) Report(objects []Object, problems map[Part]Condition) State {
	state := State{Mode: w.Mode()}
	made := map[Part]*Object{}
	for i := range objects {
		// Of several objects of a part the last one carries it.
		made[objects[i].Part] = &objects[i]
	}
	monitor := made[PartServiceMonitor]
	if monitor != nil && monitor.Kind != ServiceMonitors {
		monitor = nil
	}
	for _, part := range Parts {
		problem, failed := problems[part]
		switch {
		case failed:
			state.Conditions = append(state.Conditions, problem)
		case part == PartSelected && monitor != nil:
			state.Conditions = append(state.Conditions, w.selected(monitor.Content.GetLabels()))
		case part == PartScraped && monitor != nil:
			state.Conditions = append(state.Conditions, w.scraped(monitor.Content.GetLabels()))
		case part == PartScraped && w.Scrapes == ScrapesSeen:
			// Not only ServiceMonitors have metrics read.
			state.Conditions = append(state.Conditions, w.scraped(nil))
		case part == PartLoaded && monitor != nil && made[PartPrometheusRule] != nil && len(w.Prometheuses) > 0:
			state.Conditions = append(state.Conditions, w.loaded(made[PartPrometheusRule].Content.GetLabels(), monitor.Content.GetLabels()))
		case part == PartCertificate && w.Serving.Secure && w.Serving.Port != 0:
			state.Conditions = append(state.Conditions, w.certificate())
		case part.Told():
		case part == PartUserWorkload:
			state.Conditions = append(state.Conditions, w.userWorkload())
		case part == PartScrapeToken:
			state.Conditions = append(state.Conditions, w.token())
		case made[part] != nil && (part != PartServiceMonitor || monitor != nil):
			state.Conditions = append(state.Conditions, condition(part, true, "Kept", name(made[part].Place)+" is kept in place"))
		default:
			state.Conditions = append(state.Conditions, w.absent(part))
		}
	}
	return state
}

func name(place Place) string {
	if place.Namespace == "" {
		return place.Kind.Kind + " " + place.Name
	}
	return place.Kind.Kind + " " + place.Namespace + "/" + place.Name
}

func (w *World) certificate() Condition {
	switch {
	case w.Serving.Problem != "":
		return missing(PartCertificate, "SecretRefused", w.Serving.Problem)
	case w.Serving.Source == "":
		return condition(PartCertificate, false, "Awaited", "the certificate is being made")
	default:
		return condition(PartCertificate, true, w.Serving.Source, "metrics are served with a certificate that is valid")
	}
}

func (w *World) token() Condition {
	switch {
	case !w.WantsToken():
		return condition(PartScrapeToken, false, "NotNeeded", "nobody needs a token: metrics are served without asking for one, or nothing scrapes by ServiceMonitors")
	case w.TokenRefreshedAt == "":
		return condition(PartScrapeToken, false, "Awaited", "the token is being made")
	default:
		return condition(PartScrapeToken, true, "Kept", "Secret "+w.Installation.Namespace+"/"+TokenSecret+" is renewed in time")
	}
}

// absent says why a part was not wanted.
func (w *World) absent(part Part) Condition {
	for _, place := range Places(w.Installation.Namespace) {
		if place.Part == part && place.Kind.Optional && !w.Served[place.Kind] {
			return condition(part, false, "NotServed", fmt.Sprintf("the cluster has no %s; the operator notices when it gets them", place.Kind.CRD()))
		}
	}
	switch {
	case part == PartServiceMonitor && w.Serving.Port == 0, part == PartNetworkPolicy:
		return condition(part, false, "NotServed", "metrics are switched off (--metrics-bind-address)")
	case part == PartServiceMonitor:
		return condition(part, false, "Waiting", "the ServiceMonitor waits for "+w.waits())
	case part == PartDashboard:
		return condition(part, false, "NoPlace", "the cluster has no namespace "+ConsoleNamespace+" and no ServiceMonitors")
	default:
		return condition(part, false, "NoContent", "there is nothing to show")
	}
}

// Wired says that any part of the wiring that depends on the cluster's monitoring is there.
func (s *State) Wired() bool {
	for _, c := range s.Conditions {
		if c.Wired && c.Part != PartNetworkPolicy && c.Part != PartCertificate {
			return true
		}
	}
	return false
}

// Missing are the conditions that somebody should do something about.
func (s *State) Missing() []Condition {
	var all []Condition
	for _, c := range s.Conditions {
		if c.Missing {
			all = append(all, c)
		}
	}
	return all
}

// Summary is the state in one sentence.
func (s *State) Summary() string {
	var wired, open []string
	for _, c := range s.Conditions {
		switch {
		case c.Wired:
			wired = append(wired, string(c.Part))
		case c.Missing:
			open = append(open, string(c.Part)+": "+c.Message)
		}
	}
	told := fmt.Sprintf("monitoring mode %s; in place: %s", s.Mode, strings.Join(wired, ", "))
	if len(open) > 0 {
		told += "; missing: " + strings.Join(open, "; ")
	}
	return told
}

// YAML is the state as it stands in the ConfigMap.
func (s *State) YAML() (string, error) {
	text, err := yaml.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("writing the state of the monitoring: %w", err)
	}
	return string(text), nil
}
