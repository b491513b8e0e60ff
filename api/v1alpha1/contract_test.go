package v1alpha1_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// contract are the fields on which the platform's backend and interface rely: kind, default, and the
// values that they may have. Source: the contract.
const contract = `
agenticsessions.spec.initialPrompt: string
agenticsessions.spec.displayName: string
agenticsessions.spec.userContext.userId: string
agenticsessions.spec.userContext.displayName: string
agenticsessions.spec.userContext.groups: list of string
agenticsessions.spec.llmSettings.model: string, default claude-sonnet-4-6
agenticsessions.spec.llmSettings.temperature: number, default 0.7
agenticsessions.spec.llmSettings.maxTokens: integer, default 4000
agenticsessions.spec.timeout: integer, default 300
agenticsessions.spec.inactivityTimeout: integer
agenticsessions.spec.stopOnRunFinished: boolean
agenticsessions.spec.interactive: boolean
agenticsessions.spec.repos: list of object
agenticsessions.spec.repos[].url: string, required
agenticsessions.spec.repos[].branch: string, default main
agenticsessions.spec.repos[].autoPush: boolean, default false
agenticsessions.spec.activeWorkflow.gitUrl: string, required
agenticsessions.spec.activeWorkflow.branch: string, default main
agenticsessions.spec.activeWorkflow.path: string
agenticsessions.spec.environmentVariables: map of string
agenticsessions.spec.mcpServers.custom: map of object, open
agenticsessions.spec.mcpServers.disabled: list of string
agenticsessions.status.observedGeneration: integer
agenticsessions.status.phase: string, one of Pending Creating Running Stopping Stopped Completed Failed
agenticsessions.status.startTime: string
agenticsessions.status.completionTime: string
agenticsessions.status.lastActivityTime: string
agenticsessions.status.stoppedReason: string, one of user inactivity
agenticsessions.status.sdkSessionId: string
agenticsessions.status.sdkRestartCount: integer
agenticsessions.status.reconciledRepos: list of object
agenticsessions.status.reconciledRepos[].url: string, required
agenticsessions.status.reconciledRepos[].name: string
agenticsessions.status.reconciledRepos[].branch: string
agenticsessions.status.reconciledRepos[].branches: list of string
agenticsessions.status.reconciledRepos[].currentActiveBranch: string
agenticsessions.status.reconciledRepos[].defaultBranch: string
agenticsessions.status.reconciledRepos[].status: string, one of Cloning Ready Failed
agenticsessions.status.reconciledRepos[].clonedAt: string
agenticsessions.status.reconciledWorkflow.gitUrl: string, required
agenticsessions.status.reconciledWorkflow.branch: string
agenticsessions.status.reconciledWorkflow.path: string
agenticsessions.status.reconciledWorkflow.status: string, one of Cloning Active Failed
agenticsessions.status.reconciledWorkflow.appliedAt: string
agenticsessions.status.conditions: list of object
projectsettings.spec.groupAccess: list of object, required
projectsettings.spec.groupAccess[].groupName: string, required
projectsettings.spec.groupAccess[].role: string, required, one of admin edit view
projectsettings.spec.runnerSecretsName: string
projectsettings.spec.repositories: list of object
projectsettings.spec.repositories[].url: string, required
projectsettings.spec.repositories[].branch: string
projectsettings.spec.repositories[].provider: string, one of github gitlab
projectsettings.spec.inactivityTimeoutSeconds: integer, default 86400
projectsettings.spec.mcpServers.custom: map of object, open
projectsettings.spec.mcpServers.disabled: list of string
projectsettings.status.groupBindingsCreated: integer
projectsettings.status.scheduledSessionRBACReady: boolean
projectsettings.status.limitRangeReady: boolean
`

// form says in the words of the list above what a field is.
func form(node map[string]any, required bool) string {
	text := fmt.Sprint(node["type"])
	if items, ok := node["items"].(map[string]any); ok {
		text = fmt.Sprint("list of ", items["type"])
	}
	if values, ok := node["additionalProperties"].(map[string]any); ok {
		text = fmt.Sprint("map of ", values["type"])
		if values["x-kubernetes-preserve-unknown-fields"] == true {
			text += ", open"
		}
	}
	if required {
		text += ", required"
	}
	if value, ok := node["default"]; ok {
		text += fmt.Sprint(", default ", value)
	}
	if values, ok := node["enum"]; ok {
		text += ", one of " + strings.Trim(fmt.Sprint(values), "[]")
	}
	return text
}

// requires says whether an object's schema lists a field as required.
func requires(parent map[string]any, field string) bool {
	required, ok := parent["required"].([]any)
	return ok && slices.Contains(required, any(field))
}

// TestTheFieldsOfTheContract: what the platform writes and reads has its type, its default and its
// values. There may be more fields.
func TestTheFieldsOfTheContract(t *testing.T) {
	wanted := map[string]string{}
	if err := yaml.UnmarshalStrict([]byte(contract), &wanted); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var gather func(path string, parent map[string]any)
	gather = func(path string, parent map[string]any) {
		properties, ok := parent["properties"].(map[string]any)
		if !ok {
			return
		}
		for name, child := range properties {
			node, ok := child.(map[string]any)
			if !ok {
				continue
			}
			at := path + "." + name
			found[at] = form(node, requires(parent, name))
			gather(at, node)
			if items, ok := node["items"].(map[string]any); ok {
				gather(at+"[]", items)
			}
		}
	}
	for _, plural := range plurals {
		gather(plural, schema(t, plural))
	}
	for path, want := range wanted {
		if got := found[path]; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if found["agenticsessions.spec.llmSettings"] != "object, default map[]" {
		t.Errorf("llmSettings is %q: its defaults reach only sessions that have some of it", found["agenticsessions.spec.llmSettings"])
	}
}

// TestTheNamesOfTheContract: what people and the platform call the kinds, and that their status is
// written apart.
func TestTheNamesOfTheContract(t *testing.T) {
	for plural, want := range map[string]string{
		"agenticsessions": "vteam.ambient-code/v1alpha1 AgenticSession [as] Namespaced, status: true",
		"projectsettings": "vteam.ambient-code/v1alpha1 ProjectSettings [ps] Namespaced, status: true",
	} {
		text, err := os.ReadFile("../../config/crd/bases/vteam.ambient-code_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		crd := struct {
			Spec struct {
				Group, Scope string
				Names        struct {
					Kind, Plural string
					ShortNames   []string
				}
				Versions []struct {
					Name            string
					Served, Storage bool
					Subresources    map[string]any
				}
			}
		}{}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		names, version := crd.Spec.Names, crd.Spec.Versions[0]
		_, status := version.Subresources["status"]
		got := fmt.Sprintf("%s/%s %s %v %s, status: %t", crd.Spec.Group, version.Name, names.Kind, names.ShortNames, crd.Spec.Scope, status)
		if got != want || names.Plural != plural || !version.Served || !version.Storage {
			t.Errorf("%s is %s (%+v), want %s", names.Plural, got, version, want)
		}
	}
}
