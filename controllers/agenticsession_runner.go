package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/session"
	"github.com/ambient-code/agentic-operator/internal/workload"
)

const (
	// callPatience is how long a runner may take to answer; a worker waits no longer, whatever the
	// number of calls, as they are made at the same time.
	callPatience = 3 * time.Second
	// callsAtOnce bounds the calls of one pass; the rest is for the next.
	callsAtOnce = 8
	// headerToken carries the secret of the runner's Service; source: the contract.
	headerToken = "X-Ambient-Session-Token"
)

// errRunner marks an error of a call to a runner.
var errRunner = errors.New("calling the runner")

// tellRunner tells a running runner what was edited in the spec. The error makes the calls that
// failed be tried again.
func (r *AgenticSessionReconciler) tellRunner(ctx context.Context, o *seen) error {
	calls := o.world.Calls()
	if len(calls) == 0 {
		return nil
	}
	calls = calls[:min(len(calls), callsAtOnce)]
	address := o.world.RunnerIP()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: o.world.Session.Namespace, Name: workload.TokenSecretName(o.world.Session.Name)}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("%w: reading its secret: %w", errRunner, err)
	}
	base := "http://" + net.JoinHostPort(address, strconv.Itoa(int(o.plan.Runtime.Port)))
	results := make([]session.CallResult, len(calls))
	var wait sync.WaitGroup
	for i := range calls {
		wait.Go(func() {
			results[i] = session.CallResult{Call: calls[i], Err: post(ctx, base, string(secret.Data[workload.AGUITokenKey]), &calls[i])}
		})
	}
	wait.Wait()
	o.world.Told = results
	var errs []error
	for i := range results {
		if results[i].Err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", errRunner, results[i].Path, results[i].Err))
		}
	}
	return errors.Join(errs...)
}

// runners speaks with runners: directly, whatever proxy the operator itself uses.
var runners = &http.Client{
	Timeout:   callPatience,
	Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: -1, DisableKeepAlives: true},
	// A runner that sends us elsewhere is not one.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// post makes one call. The error says what the runner answered, never the token.
func post(ctx context.Context, base, token string, call *session.Call) (err error) {
	if token == "" {
		return errors.New("the secret of its Service is not known, and it is not called without")
	}
	body, err := json.Marshal(call.Body)
	if err != nil {
		return fmt.Errorf("encoding the call: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+call.Path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making the call: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(headerToken, token)
	answer, err := runners.Do(request)
	if err != nil {
		return quiet(err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	// What it says beside is for its log: it may hold what not everybody may read.
	return fmt.Errorf("it answered %s; see the log of its pod", answer.Status)
}

// quiet leaves out of a connection error what changes with each attempt, such as our own port, so
// that the condition does not change with it.
func quiet(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("it did not answer within %s", callPatience)
	}
	return errors.New("it cannot be reached")
}
