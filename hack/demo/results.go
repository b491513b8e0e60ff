package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// results shows what came of the session: the commit, the log with the artifact.
func (d *demo) results(ctx context.Context) error {
	headline("4. What came of it")
	if d.cluster.Node == rig.NodeReal {
		if err := d.commit(ctx); err != nil {
			return err
		}
		if err := d.log(ctx); err != nil {
			return err
		}
	}
	// The session ends with its runner; the Job controller closes the Job a moment later.
	if _, err := d.cluster.RunKubectl(ctx, "-n", project, "wait", "--for=condition=Complete", "--timeout=30s", "job/"+sessionName+"-run-1"); err != nil {
		return err
	}
	objects, err := d.cluster.RunKubectl(ctx, "-n", project, "get", "agenticsessions,jobs,pods,services,persistentvolumeclaims")
	if err != nil {
		return err
	}
	fmt.Printf("\n%s", objects)
	return nil
}

// commit shows the runner's commit, as the git server has it.
func (d *demo) commit(ctx context.Context) error {
	commits, err := d.cluster.Commits(ctx, project, repository)
	if err != nil {
		return err
	}
	say("Commits on the git server (newest first):")
	for _, commit := range commits {
		fmt.Printf("  %.12s  %-24s %s\n", commit.Hash, commit.Author, strings.TrimSpace(commit.Message))
	}
	return nil
}

// log shows the end of the runner's log.
func (d *demo) log(ctx context.Context) error {
	text, err := d.cluster.RunKubectl(ctx, "-n", project, "logs", "--tail=12", "-l", "agentic-session="+sessionName)
	if err != nil {
		return err
	}
	say("\nThe end of the runner's log:")
	for line := range strings.Lines(string(text)) {
		fmt.Print("  " + line)
	}
	return nil
}

// goOn says what to try while the cluster is there.
func (d *demo) goOn() {
	headline("7. How to go on")
	fmt.Printf(`In another terminal:
  export KUBECONFIG=%s
  alias k=%s
  k explain agenticsession.spec.timeout
  k -n %s get as -o wide
  k -n %s describe as %s
  k -n %s annotate as %s ambient-code.io/desired-phase=Running    # run it again
  k -n %s get as -w
  k -n %s annotate as %s ambient-code.io/desired-phase=Stopped    # stop it
The cluster ends, and leaves nothing behind, with Ctrl-C here.
`, d.cluster.Kubeconfig, d.cluster.Kubectl(), project, project, sessionName, project, sessionName, project, project, sessionName)
	if d.prometheus != nil {
		fmt.Printf("Prometheus is at %s until then. How long sessions take to start:\n  %s\n", d.prometheus.URL, d.prometheus.Graph(5, startup))
	}
	if d.prometheus != nil && !d.prometheus.HasPage {
		say("It was built without its page and answers only programs; before the next demo build it with: go run ./hack/screenshot --page-only")
	}
}
