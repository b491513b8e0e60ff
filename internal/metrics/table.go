package metrics

import (
	"slices"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/session"
)

// The types of metrics.
const (
	Counter   = "counter"
	Gauge     = "gauge"
	Histogram = "histogram"
)

// Metric describes a metric: it is made from this, and so is its documentation.
type Metric struct {
	Name    string
	Type    string
	Labels  []string
	Meaning string
	// Values are all values that a label can have. The other labels are open: namespaces, and what
	// the build says of itself.
	Values map[string][]string
	// Buckets are the upper limits of a histogram's buckets, without the infinite one.
	Buckets []float64

	// together lists the values of labels besides the namespace that go together, where not every
	// value goes with every other.
	together [][]string
	// read says that it is made anew at each scrape.
	read bool
}

// ofNamespace says that each namespace has series of its own.
func (m *Metric) ofNamespace() bool { return slices.Contains(m.Labels, labelNamespace) }

// born lists the label values, besides the namespace, with which series begin at 0.
func (m *Metric) born() [][]string {
	if m.together != nil {
		return m.together
	}
	all := [][]string{nil}
	for _, label := range m.Labels {
		if label == labelNamespace {
			continue
		}
		var longer [][]string
		for _, values := range all {
			for _, value := range m.Values[label] {
				longer = append(longer, append(slices.Clone(values), value))
			}
		}
		all = longer
	}
	return all
}

// named finds a metric of the table.
func named(name string) *Metric {
	return &Table[slices.IndexFunc(Table, func(m Metric) bool { return m.Name == name })]
}

// The names of the metrics.
const (
	StartupDuration  = "ambient_session_startup_duration_seconds"
	SessionsCreated  = "ambient_sessions_total"
	SessionsEnded    = "ambient_sessions_completed_total"
	PhaseTransitions = "ambient_session_phase_transitions_total"
	PassDuration     = "ambient_reconcile_duration_seconds"
	PodCreation      = "ambient_pod_creation_duration_seconds"
	TokenProvision   = "ambient_token_provision_duration_seconds"
	SessionErrors    = "ambient_session_errors_total"

	Sessions        = "ambient_sessions"
	OldestAge       = "ambient_session_oldest_age_seconds"
	RunDuration     = "ambient_session_run_duration_seconds"
	RunOutcomes     = "ambient_session_run_outcomes_total"
	TokenRenewals   = "ambient_token_renewals_total"
	TokenNextExpiry = "ambient_token_next_expiry_timestamp_seconds"
	Leader          = "ambient_operator_leader"
	Wired           = "ambient_monitoring_wired"
	BuildInfo       = "ambient_operator_build_info"
)

// The labels.
const (
	labelNamespace  = "namespace"
	labelPhase      = "phase"
	labelFromPhase  = "from_phase"
	labelToPhase    = "to_phase"
	labelFinalPhase = "final_phase"
	labelSuccess    = "success"
	labelErrorType  = "error_type"
	labelReason     = "reason"
	labelResult     = "result"
	labelPart       = "part"
)

// Other stands for an error type or a reason that is not among the known ones.
const Other = "other"

// The types of errors.
const (
	ErrorBlocked   = "blocked"
	ErrorToken     = "token"
	ErrorRunner    = "runner"
	ErrorTimeout   = "timeout"
	ErrorConflict  = "conflict"
	ErrorForbidden = "forbidden"
)

// Part is a part of the monitoring wiring.
type Part string

// The parts of the monitoring wiring.
const (
	PartServiceMonitor         Part = "service_monitor"
	PartPrometheusRule         Part = "prometheus_rule"
	PartDashboard              Part = "dashboard"
	PartQuickStart             Part = "quick_start"
	PartYAMLSample             Part = "yaml_sample"
	PartScrapeToken            Part = "scrape_token"
	PartNetworkPolicy          Part = "network_policy"
	PartUserWorkloadMonitoring Part = "user_workload_monitoring"
)

var (
	// buckets are for what happens while somebody waits.
	buckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800}
	// runBuckets go further, as runs may take hours, and are coarse below a minute.
	runBuckets = []float64{0.05, 1, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400}

	errorTypes = []string{ErrorBlocked, ErrorToken, ErrorRunner, ErrorTimeout, ErrorConflict, ErrorForbidden, Other}
	results    = []string{"success", "failure"}
	parts      = []Part{PartServiceMonitor, PartPrometheusRule, PartDashboard, PartQuickStart, PartYAMLSample,
		PartScrapeToken, PartNetworkPolicy, PartUserWorkloadMonitoring}
	// waitingPhases are those in which a session waits for something that should come soon.
	waitingPhases = []v1alpha1.Phase{v1alpha1.PhasePending, v1alpha1.PhaseCreating, v1alpha1.PhaseStopping}
)

// endings are the reasons for which runs end, by the phase they end in.
var endings = map[v1alpha1.Phase][]string{
	v1alpha1.PhaseCompleted: {v1alpha1.ReasonRunnerCompleted},
	v1alpha1.PhaseStopped:   {v1alpha1.ReasonStoppedByUser, v1alpha1.ReasonInactivityTimeout, v1alpha1.ReasonRestored},
	v1alpha1.PhaseFailed: {
		v1alpha1.ReasonRunnerFailed, v1alpha1.ReasonOOMKilled, v1alpha1.ReasonEvicted, v1alpha1.ReasonTimeout,
		v1alpha1.ReasonRunnerLost, v1alpha1.ReasonRunnerUnstartable, v1alpha1.ReasonStartTimeout, v1alpha1.ReasonInvalidSpec,
		v1alpha1.ReasonNameCollision, v1alpha1.ReasonPrerequisiteMissing, v1alpha1.ReasonRegistryInvalid,
		v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonPodCreateForbidden, v1alpha1.ReasonCreateRefused,
		v1alpha1.ReasonUnschedulable, v1alpha1.ReasonImagePullBackOff, v1alpha1.ReasonContainerConfigError,
		v1alpha1.ReasonContainerStartError, v1alpha1.ReasonBeingDeleted, v1alpha1.ReasonTokenNotRenewed, Other,
	},
}

// Table lists every metric of the operator. Names, types and labels of the first eight are the
// contract's.
var Table = []Metric{
	{Name: StartupDuration, Type: Histogram, Labels: []string{labelNamespace}, Buckets: buckets,
		Meaning: "From the moment a run was asked for (Pending) until its runner answered (Running), waiting for prerequisites included."},
	{Name: SessionsCreated, Type: Counter, Labels: []string{labelNamespace},
		Meaning: "Sessions created. Restarts do not count."},
	{Name: SessionsEnded, Type: Counter, Labels: []string{labelNamespace, labelFinalPhase},
		Values:  map[string][]string{labelFinalPhase: finalPhases()},
		Meaning: "Runs that reached Stopped, Failed or Completed. A session that is restarted counts again when it ends again, one that is deleted before it ends never."},
	{Name: PhaseTransitions, Type: Counter, Labels: []string{labelNamespace, labelFromPhase, labelToPhase},
		Values:   map[string][]string{labelFromPhase: phases(), labelToPhase: phases()},
		together: transitions(),
		Meaning:  "Phase changes that were stored."},
	{Name: PassDuration, Type: Histogram, Labels: []string{labelPhase, labelSuccess}, Buckets: buckets,
		Values:  map[string][]string{labelPhase: phases(), labelSuccess: {"true", "false"}},
		Meaning: "Duration of one pass over a session, by the phase it began in."},
	{Name: PodCreation, Type: Histogram, Labels: []string{labelNamespace}, Buckets: buckets,
		Meaning: "From the Job of a run to its pod, by the API server's timestamps. They have whole seconds: averages are right, quantiles below a second are not."},
	{Name: TokenProvision, Type: Histogram, Labels: []string{labelNamespace}, Buckets: buckets,
		Meaning: "Time it took to mint a runner's token and to store it, where that succeeded."},
	{Name: SessionErrors, Type: Counter, Labels: []string{labelNamespace, labelPhase, labelErrorType},
		Values:   map[string][]string{labelPhase: phases(), labelErrorType: errorTypes},
		together: errorsMet(),
		Meaning:  "Passes over a session that failed and are tried again. That a session changed while its status was written is no error."},

	{Name: Sessions, Type: Gauge, read: true, Labels: []string{labelNamespace, labelPhase},
		Values:  map[string][]string{labelPhase: phases()},
		Meaning: "Sessions that exist, by phase. Only the replica that leads has it, so a sum counts each session once; not with --legacy-watch, which keeps no sessions."},
	{Name: OldestAge, Type: Gauge, read: true, Labels: []string{labelNamespace, labelPhase},
		Values:  map[string][]string{labelPhase: words(waitingPhases)},
		Meaning: "How long the session that has been in this phase for longest has been in it; 0 when there is none. Where ambient_sessions is."},
	{Name: RunDuration, Type: Histogram, Labels: []string{labelNamespace}, Buckets: runBuckets,
		Meaning: "From the start of a run's runner to its end. Runs whose runner never started do not count."},
	{Name: RunOutcomes, Type: Counter, Labels: []string{labelNamespace, labelFinalPhase, labelReason},
		Values:   map[string][]string{labelFinalPhase: finalPhases(), labelReason: reasons()},
		together: outcomes(),
		Meaning:  "Runs that ended, as ambient_sessions_completed_total, by the reason too."},
	{Name: TokenRenewals, Type: Counter, Labels: []string{labelNamespace, labelResult},
		Values:  map[string][]string{labelResult: results},
		Meaning: "Attempts to mint a runner's token and to store it: the first of a run and those that replace it."},
	{Name: TokenNextExpiry, Type: Gauge, read: true,
		Meaning: "When the first of the tokens of all runners will expire, in seconds since 1970. Tokens are renewed at two thirds of their life, so it stays well ahead of now. Absent while there is no runner, and on replicas that do not lead."},
	{Name: Leader, Type: Gauge,
		Meaning: "Whether this replica works: 1 on the one that leads, or that runs without leader election; 0 on the others."},
	{Name: Wired, Type: Gauge, Labels: []string{labelPart},
		Values:  map[string][]string{labelPart: words(parts)},
		Meaning: "Whether a part of the monitoring wiring is in place (1) or not (0). Only the replica that leads has it."},
	{Name: BuildInfo, Type: Gauge, Labels: []string{"version", "revision"},
		Meaning: "Which build of the operator this is; always 1."},
}

func phases() []string {
	var names []string
	for _, info := range v1alpha1.Phases {
		names = append(names, string(info.Phase))
	}
	return names
}

func finalPhases() []string {
	return slices.DeleteFunc(phases(), func(name string) bool { return !v1alpha1.Phase(name).Terminal() })
}

func reasons() []string {
	var all []string
	for _, phase := range finalPhases() {
		all = append(all, endings[v1alpha1.Phase(phase)]...)
	}
	return all
}

func words[T ~string](all []T) []string {
	var names []string
	for _, word := range all {
		names = append(names, string(word))
	}
	return names
}

// transitions are the label values of all phase changes that the rules allow.
func transitions() [][]string {
	var all [][]string
	for _, edge := range session.Edges() {
		all = append(all, []string{string(edge.From), string(edge.To)})
	}
	return all
}

// outcomes are the label values of all ends of runs.
func outcomes() [][]string {
	var all [][]string
	for _, phase := range finalPhases() {
		for _, reason := range endings[v1alpha1.Phase(phase)] {
			all = append(all, []string{phase, reason})
		}
	}
	return all
}

// errorsMet are the label values of all errors that can be met: there is a token, or a runner to
// call, in some phases only.
func errorsMet() [][]string {
	var all [][]string
	for _, phase := range phases() {
		starting := phase == string(v1alpha1.PhaseCreating) || phase == string(v1alpha1.PhaseRunning)
		for _, kind := range errorTypes {
			if starting || kind != ErrorToken && kind != ErrorRunner {
				all = append(all, []string{phase, kind})
			}
		}
	}
	return all
}
