package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// results shows what came of the session: the commit, the log with the artifact, metrics.
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
	return d.metrics(ctx)
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

// metrics shows what the operator counted of the session.
func (d *demo) metrics(ctx context.Context) error {
	text, err := d.scrape(ctx)
	if err != nil {
		return err
	}
	say("\nWhat the operator counted:")
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "ambient_session") && !strings.Contains(line, "_bucket") && strings.Contains(line, `namespace="`+project+`"`) {
			fmt.Println("  " + line)
		}
	}
	return lines.Err()
}

// scrape reads the metrics of the operator: of its pod that leads, or of the program here.
func (d *demo) scrape(ctx context.Context) ([]byte, error) {
	if d.process != nil {
		return scrapeHere(ctx, d.process.Metrics)
	}
	pods := &corev1.PodList{}
	if err := d.cluster.Client.List(ctx, pods, client.InNamespace(rig.OperatorNamespace)); err != nil {
		return nil, fmt.Errorf("listing the operator's pods: %w", err)
	}
	var all []byte
	for i := range pods.Items {
		text, err := d.cluster.Scrape(ctx, pods.Items[i].Name)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %w", pods.Items[i].Name, err)
		}
		all = append(all, text...)
	}
	return all, nil
}

func scrapeHere(ctx context.Context, address string) (text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for the metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if text, err = io.ReadAll(answer.Body); err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	return text, nil
}

// goOn says what to try while the cluster is there.
func (d *demo) goOn() {
	headline("6. How to go on")
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
}
