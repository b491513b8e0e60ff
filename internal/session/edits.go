package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Call is something that a running runner is to be told because the spec was edited.
type Call struct {
	// Path is that of the runner's interface; source: the contract.
	Path string
	// Body is sent as JSON.
	Body any
	// Repo is the repository that the call is about, nil for the workflow; Name is its name at the
	// runner.
	Repo *v1alpha1.Repo
	Name string
}

// CallResult is what came of a call; Err is nil when the runner took it over.
type CallResult struct {
	Call
	Err error
}

// Paths of the runner's interface; source: the contract.
const (
	pathAddRepo    = "/repos/add"
	pathRemoveRepo = "/repos/remove"
	pathWorkflow   = "/workflow"
)

// Statuses of a repository or workflow in a running session; source: the contract.
const (
	repoReady      = "Ready"
	repoFailed     = "Failed"
	workflowActive = "Active"
	workflowFailed = "Failed"
)

// RunSpec is a digest of what of a session's spec a run takes over only at its start. The rest
// reaches a running runner by calls, or is the operator's own business. The fields are named one by
// one, so that a field of a later version does not make every run of today look outdated.
func RunSpec(s *v1alpha1.AgenticSession) string {
	var pushed []string
	for i := range s.Spec.Repos {
		if s.Spec.Repos[i].AutoPush {
			pushed = append(pushed, s.Spec.Repos[i].Name())
		}
	}
	slices.Sort(pushed)
	spec := &s.Spec
	data, err := json.Marshal([]any{
		spec.InitialPrompt, spec.UserContext, spec.LLMSettings, spec.Timeout, spec.StopOnRunFinished,
		spec.Interactive, spec.EnvironmentVariables, spec.MCPServers, pushed,
	})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Calls lists what the runner is still to be told, removals first: a repository whose place is
// taken by another of its name has to make way for it.
func (w *World) Calls() []Call {
	if w.Phase() != v1alpha1.PhaseRunning || !w.ready() || w.RunnerIP() == "" {
		return nil
	}
	var calls []Call
	known := w.Session.Status.ReconciledRepos
	for i := range known {
		if !wanted(w.Session.Spec.Repos, known[i].Name) && v1alpha1.FitsFolder(known[i].Name) {
			repo := &v1alpha1.Repo{URL: known[i].URL, Branch: known[i].Branch}
			calls = append(calls, Call{Path: pathRemoveRepo, Repo: repo, Name: known[i].Name, Body: map[string]string{"name": known[i].Name}})
		}
	}
	for i := range w.Session.Spec.Repos {
		repo := &w.Session.Spec.Repos[i]
		// A runner that joins such a name to its workspace would work on the workspace itself.
		if v1alpha1.FitsFolder(repo.Name()) && !sameRepo(findRepo(known, repo.Name()), repo) {
			calls = append(calls, Call{Path: pathAddRepo, Repo: repo, Name: repo.Name(), Body: map[string]string{"url": repo.URL, "branch": repo.Branch, "name": repo.Name()}})
		}
	}
	if want := w.Session.Spec.ActiveWorkflow; want != nil && !sameWorkflow(w.Session.Status.ReconciledWorkflow, want) {
		calls = append(calls, Call{Path: pathWorkflow, Body: map[string]string{"gitUrl": want.GitURL, "branch": want.Branch, "path": want.Path}})
	}
	return calls
}

func findRepo(known []v1alpha1.ReconciledRepo, name string) *v1alpha1.ReconciledRepo {
	for i := range known {
		if known[i].Name == name {
			return &known[i]
		}
	}
	return nil
}

func sameWorkflow(has *v1alpha1.ReconciledWorkflow, want *v1alpha1.Workflow) bool {
	return has != nil && has.GitURL == want.GitURL && has.Branch == want.Branch && has.Path == want.Path && has.Status == workflowActive
}

// begin takes over what the runner was started with.
func begin(status *v1alpha1.AgenticSessionStatus, w *World) {
	status.ReconciledRepos, status.ReconciledWorkflow = nil, nil
	if w.Job == nil {
		return
	}
	now := metav1.NewTime(w.Now)
	var repos []v1alpha1.Repo
	if err := json.Unmarshal([]byte(w.Job.Annotations[v1alpha1.AnnotationRunRepos]), &repos); err == nil {
		for i := range repos {
			status.ReconciledRepos = append(status.ReconciledRepos, reconciledRepo(&repos[i], repoReady, &now))
		}
	}
	workflow := v1alpha1.Workflow{}
	if err := json.Unmarshal([]byte(w.Job.Annotations[v1alpha1.AnnotationRunWorkflow]), &workflow); err == nil && workflow.GitURL != "" {
		status.ReconciledWorkflow = reconciledWorkflow(&workflow, workflowActive, &now)
	}
}

func reconciledRepo(repo *v1alpha1.Repo, status string, at *metav1.Time) v1alpha1.ReconciledRepo {
	return v1alpha1.ReconciledRepo{URL: repo.URL, Name: repo.Name(), Branch: repo.Branch, Status: status, ClonedAt: at}
}

func reconciledWorkflow(workflow *v1alpha1.Workflow, status string, at *metav1.Time) *v1alpha1.ReconciledWorkflow {
	return &v1alpha1.ReconciledWorkflow{GitURL: workflow.GitURL, Branch: workflow.Branch, Path: workflow.Path, Status: status, AppliedAt: at}
}

// settle enters what came of the calls.
func settle(status *v1alpha1.AgenticSessionStatus, w *World) {
	now := metav1.NewTime(w.Now)
	for i := range w.Told {
		result := &w.Told[i]
		switch result.Path {
		case pathRemoveRepo:
			if result.Err == nil {
				status.ReconciledRepos = slices.DeleteFunc(status.ReconciledRepos, func(r v1alpha1.ReconciledRepo) bool { return r.Name == result.Name })
			}
		case pathAddRepo:
			settleRepo(status, result, &now)
		case pathWorkflow:
			state, at := workflowActive, &now
			if result.Err != nil {
				state, at = workflowFailed, nil
			}
			status.ReconciledWorkflow = reconciledWorkflow(w.Session.Spec.ActiveWorkflow, state, at)
		}
	}
}

func settleRepo(status *v1alpha1.AgenticSessionStatus, result *CallResult, now *metav1.Time) {
	entry := reconciledRepo(result.Repo, repoReady, now)
	if result.Err != nil {
		entry.Status, entry.ClonedAt = repoFailed, nil
	}
	if has := findRepo(status.ReconciledRepos, entry.Name); has != nil {
		*has = entry
		return
	}
	status.ReconciledRepos = append(status.ReconciledRepos, entry)
}

// setEdits sets the conditions about edits of the spec during a run.
func setEdits(set setter, w *World, d Decision, status *v1alpha1.AgenticSessionStatus) {
	repos := edit{kind: v1alpha1.ConditionReposReconciled, fine: "the runner has the repositories of the spec"}
	workflow := edit{kind: v1alpha1.ConditionWorkflowReconciled, fine: "the runner has the workflow of the spec"}
	if d.To != v1alpha1.PhaseRunning {
		repos.fine, workflow.fine = "the next run begins with the repositories of the spec", "the next run begins with the workflow of the spec"
	} else {
		repos.waits = strings.Join(untold(w.Session.Spec.Repos, status.ReconciledRepos), ", ")
		if want := w.Session.Spec.ActiveWorkflow; want != nil && !sameWorkflow(status.ReconciledWorkflow, want) {
			workflow.waits = want.GitURL
		}
		repos.refused, workflow.refused = w.refusals()
	}
	repos.set(set, w)
	workflow.set(set, w)
	live := d.To == v1alpha1.PhaseCreating || d.To == v1alpha1.PhaseRunning
	all := edit{kind: v1alpha1.ConditionReconciled, fine: "no edit of the spec waits for the session to be started again"}
	switch {
	case repos.waits != "":
		all.waits, all.refused = repos.waits, repos.refused
	case workflow.waits != "":
		all.waits, all.refused = workflow.waits, workflow.refused
	case live && w.outdated() != "":
		set(all.kind, metav1.ConditionFalse, v1alpha1.ReasonSpecChanged, w.outdated())
		return
	}
	all.set(set, w)
}

// edit is what is to be said of one kind of edit.
type edit struct {
	kind string
	// fine is what is said when nothing waits.
	fine string
	// waits names what the runner has not taken over; empty for nothing.
	waits string
	// refused is what the runner answered in this pass.
	refused error
}

// set says that an edit waits, with the runner's last answer where it refused. A pass that does not
// ask the runner leaves that answer as it is.
func (e *edit) set(set setter, w *World) {
	known := find(w.Session.Status.Conditions, e.kind)
	switch {
	case e.waits == "":
		set(e.kind, metav1.ConditionTrue, v1alpha1.ReasonPresent, e.fine)
	case e.refused != nil:
		set(e.kind, metav1.ConditionFalse, v1alpha1.ReasonRunnerCallFailed, strings.ReplaceAll(e.refused.Error(), "\n", "; "))
	case len(w.Told) == 0 && known != nil && known.Reason == v1alpha1.ReasonRunnerCallFailed:
		set(e.kind, known.Status, known.Reason, known.Message)
	default:
		set(e.kind, metav1.ConditionFalse, v1alpha1.ReasonWaiting, "the runner has not taken over yet: "+e.waits)
	}
}

// untold names the repositories of which spec and runner differ.
func untold(wants []v1alpha1.Repo, known []v1alpha1.ReconciledRepo) []string {
	var names []string
	for i := range wants {
		switch name := wants[i].Name(); {
		case !v1alpha1.FitsFolder(name):
			names = append(names, wants[i].URL+" (it does not end in a name for a folder: correct it)")
		case !sameRepo(findRepo(known, name), &wants[i]):
			names = append(names, wants[i].URL)
		}
	}
	for i := range known {
		if !wanted(wants, known[i].Name) {
			names = append(names, known[i].URL+" (to be removed)")
		}
	}
	return names
}

func wanted(wants []v1alpha1.Repo, name string) bool {
	return slices.ContainsFunc(wants, func(r v1alpha1.Repo) bool { return r.Name() == name })
}

func sameRepo(has *v1alpha1.ReconciledRepo, want *v1alpha1.Repo) bool {
	return has != nil && has.URL == want.URL && has.Branch == want.Branch && has.Status == repoReady
}

// refusals are the errors of the calls of this pass.
func (w *World) refusals() (repos, workflow error) {
	for i := range w.Told {
		switch result := &w.Told[i]; {
		case result.Err == nil:
		case result.Repo == nil:
			workflow = fmt.Errorf("the runner did not take over the workflow %s: %w", w.Session.Spec.ActiveWorkflow.GitURL, result.Err)
		default:
			repos = errors.Join(repos, fmt.Errorf("the runner did not take over repository %s: %w", result.Repo.URL, result.Err))
		}
	}
	return repos, workflow
}

// outdated says what of the spec the run in progress does not know; empty when nothing.
func (w *World) outdated() string {
	job := w.currentJob()
	if job == nil {
		return ""
	}
	if of := job.Annotations[v1alpha1.AnnotationRunSpec]; of != "" && of != RunSpec(w.Session) {
		return "the spec was edited after the run began; the edit takes effect when the session is next started"
	}
	if w.Session.Spec.ActiveWorkflow == nil && w.Session.Status.ReconciledWorkflow != nil && w.Phase() == v1alpha1.PhaseRunning {
		return "the workflow was taken out of the spec; the runner keeps it until the session is next started"
	}
	return ""
}
