package observability

import _ "embed"

//go:embed session.yaml
var sessionYAML string

// quickStartDescription is what a Console shows of the quick start before it is opened.
const quickStartDescription = "Create a session of an AI agent, watch it work, and find its figures under Observe."

// QuickStart is the spec of a ConsoleQuickStart (console.openshift.io/v1) that leads to a first
// session. The Console hides it from people who may not create one.
func QuickStart() map[string]any {
	return map[string]any{
		"displayName":     "Run a first agentic session",
		"durationMinutes": int64(10),
		"description":     quickStartDescription,
		"introduction": "A **session** is one run of an AI agent in a project: a pod with a workspace, an identity and the project's secrets. " +
			"You will give a project what its runners need, create a session and look at what it did.",
		"prerequisites": []any{"A project in which you may create Secrets and sessions", "A key of a language model"},
		"tasks":         []any{quickStartProject(), quickStartSession(), quickStartFigures()},
		"conclusion":    "You ran a session. Annotate it with `ambient-code.io/desired-phase=Running` to start it again.",
		"accessReviewResources": []any{
			map[string]any{"group": "vteam.ambient-code", "resource": "agenticsessions", "verb": "create"},
		},
	}
}

func quickStartProject() map[string]any {
	return map[string]any{
		"title": "Prepare the project",
		"description": "1. Have an administrator label the project: `oc label namespace PROJECT ambient-code.io/managed=true`.\n" +
			"1. Under **Workloads → Secrets** create a key/value Secret named `ambient-runner-secrets` with the key `ANTHROPIC_API_KEY`.",
		"review": map[string]any{
			"instructions":   "Does the project have a `ProjectSettings` named `projectsettings` (**Home → Search**), and the Secret?",
			"failedTaskHelp": "Without the label the operator does not serve the project. Ask who administers the cluster.",
		},
		"summary": map[string]any{"success": "The project can run sessions.", "failed": "Label the project and create the Secret, then try again."},
	}
}

func quickStartSession() map[string]any {
	return map[string]any{
		"title": "Create a session",
		"description": "1. Press **+** (Import YAML) and choose the project.\n" +
			"1. Paste this and press **Create**:\n\n```yaml\n" + sessionYAML + "```\n\n" +
			"1. Its page shows the phase: Pending, Creating, Running, Completed.",
		"review": map[string]any{
			"instructions":   "Does its phase become **Running** within some minutes?",
			"failedTaskHelp": "Condition `Ready` of the session says what it waits for, in words; its Events say what was tried.",
		},
		"summary": map[string]any{"success": "The agent works.", "failed": "Read condition Ready of the session, then try again."},
	}
}

func quickStartFigures() map[string]any {
	return map[string]any{
		"title": "Find its figures",
		"description": "1. Open **Observe → Dashboards** and choose **" + Title + "**.\n" +
			"1. Under **Start of sessions** see how long it took from Pending to Running.",
		"review": map[string]any{
			"instructions":   "Does **Sessions by phase** count your session?",
			"failedTaskHelp": "The figures are the operator's, in its own namespace: seeing them takes the right to see that project's metrics. Ask who administers the cluster.",
		},
		"summary": map[string]any{"success": "You know where to look.", "failed": "Ask an administrator for the dashboard."},
	}
}

// YAMLSample is the spec of a ConsoleYAMLSample (console.openshift.io/v1): what the Console offers
// beside the editor when somebody creates a session.
func YAMLSample() map[string]any {
	return map[string]any{
		"targetResource": map[string]any{"apiVersion": "vteam.ambient-code/v1alpha1", "kind": "AgenticSession"},
		"title":          "A session on a repository",
		"description":    "Clones a repository, has the agent write about it, and ends when it is done.",
		"yaml":           sessionYAML,
	}
}
