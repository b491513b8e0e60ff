package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// soak says that tests may take long and use much: SOAK=1.
func soak() bool { return os.Getenv("SOAK") != "" }

// TestCase40AtRest: many sessions that are all running cost nothing, and what others add to our
// objects (as OpenShift's controllers do) is left alone: nobody fights over it.
func TestCase40AtRest(t *testing.T) {
	count, quiet := 200, 15*time.Second
	if soak() {
		quiet = 5 * time.Minute
	}
	if legacyWatch() && !soak() {
		count = 40 // reads of every pass go to the API server: that costs what it costs
	}
	p := newProject(t, alone(t, nil))
	p.session("first", "hang", timeout(0)).reaches(running)
	goroutines := runtime.NumGoroutine()
	sessions := make([]*session, count)
	for i := range sessions {
		sessions[i] = p.session(fmt.Sprintf("rest-%d", i), "hang", timeout(0))
	}
	p.within(10*time.Minute, "all sessions run", func() error {
		for _, s := range sessions {
			if err := s.phaseIs(running); err != nil {
				return err
			}
		}
		return nil
	})
	injected := sessions[0].name
	p.patch(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "ambient-session-" + injected}},
		`{"imagePullSecrets":[{"name":"pull"}],"secrets":[{"name":"pull"}],"metadata":{"annotations":{"openshift.io/internal-registry-pull-secret-ref":"pull"}}}`)
	p.patch(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "session-" + injected}},
		`{"metadata":{"annotations":{"service.beta.openshift.io/serving-cert-signed-by":"ca"},"labels":{"team/x":"1"}}}`)
	p.settles(0)
	p.stopsLooking(5 * time.Second)
	before, passes := len(p.operator.gate.written(p.name)), p.passes()
	time.Sleep(quiet)
	if writes := p.operator.gate.written(p.name)[before:]; len(writes) > 0 {
		t.Errorf("the operator wrote %d times in %s although nothing happened: %v", len(writes), quiet, writes[:min(5, len(writes))])
	}
	if made := p.passes() - passes; made > float64(count) {
		t.Errorf("the operator made %v passes over %d sessions in %s although nothing happened", made, count, quiet)
	}
	// Case 45: what a session costs is in caches, not in goroutines.
	p.flat(goroutines, count/4)
	account := &corev1.ServiceAccount{}
	p.get("ambient-session-"+injected, account)
	if len(account.ImagePullSecrets) != 1 || account.Annotations["openshift.io/internal-registry-pull-secret-ref"] == "" {
		t.Errorf("what another controller added to ServiceAccount %s was taken away: %+v", account.Name, account)
	}
	for _, s := range sessions {
		s.ranOnce()
	}
	if err := suite.admin.DeleteAllOf(p.ctx, sessions[0].object(), client.InNamespace(p.name)); err != nil {
		t.Fatal(err)
	}
	p.within(10*time.Minute, "the sessions are gone", func() error {
		for _, s := range sessions {
			if s.latest() != nil {
				return fmt.Errorf("session %s is there", s.name)
			}
		}
		return nil
	})
	p.flat(goroutines, 40)
}

// flat waits until there are no more goroutines than there were, and a few.
func (p *project) flat(before, more int) {
	p.t.Helper()
	p.eventually("there are not many more goroutines", func() error {
		if now := runtime.NumGoroutine(); now > before+more {
			return fmt.Errorf("there are %d, were %d", now, before)
		}
		return nil
	})
}

// stopsLooking waits until the operator has looked at nothing for a while: after its last write it looks
// at what it wrote, and with plain watches at one session after the other.
func (p *project) stopsLooking(quiet time.Duration) {
	p.t.Helper()
	last, since := -1.0, time.Now()
	p.eventually("the operator rests", func() error {
		if n := p.passes(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("it made %v passes so far", last)
		}
		return nil
	})
}

func (p *project) passes() float64 {
	p.t.Helper()
	n, err := p.operator.total("ambient_reconcile_duration_seconds", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// TestCase42WhatIsRead: of kinds that others use as well the operator lists and watches what has its
// labels, or nothing but metadata; no read starts a watch that is not in the table.
func TestCase42WhatIsRead(t *testing.T) {
	p := newProject(t, alone(t, nil))
	s := p.session("reads", "hang")
	s.reaches(running)
	s.stop()
	s.reaches(stopped)
	begun := map[string]bool{}
	for _, c := range p.operator.gate.all() {
		if !c.watch && (c.method != http.MethodGet || strings.Count(c.path, "/") > 4) {
			continue // a write, or a read in one namespace
		}
		if c.watch {
			begun[filepath.Base(c.path)] = true
		}
		narrow := c.metadata || c.query.Has("labelSelector") || c.query.Has("fieldSelector")
		if !narrow && c.watch && !strings.Contains(c.path, "vteam.ambient-code") {
			t.Errorf("the operator watches all of %s: %s", filepath.Base(c.path), c.query.Encode())
		}
	}
	for _, kind := range []string{"pods", "jobs", "secrets", "agenticsessions"} {
		if !begun[kind] {
			t.Errorf("no watch of %s was seen, only %v", kind, begun)
		}
	}
	for _, kind := range []string{"nodes", "persistentvolumes", "deployments", "endpoints"} {
		if begun[kind] {
			t.Errorf("the operator watches %s", kind)
		}
	}
}

// all lists the calls so far.
func (g *gate) all() []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// TestCase42ObjectsOfOthers: Secrets, ConfigMaps and pods of others, many and large, cost the operator
// next to no memory.
func TestCase42ObjectsOfOthers(t *testing.T) {
	trouble(t)
	// Held whole, they would take their size at least.
	secrets, configs, pods, most := 300, 100, 300, int64(20<<20)
	if soak() {
		secrets, configs, pods, most = 1000, 1000, 5000, 30<<20
	}
	operator := runProcess(t, "memory")
	p := newProject(t, nil)
	first := p.session("first", "hang")
	first.reaches(running)
	before := settledMemory(t, operator)
	others := emptyProject(t, nil, nil)
	large := map[string][]byte{"blob": []byte(strings.Repeat("x", 100<<10))}
	spread(t, secrets, func(i int) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: others.name, Name: fmt.Sprintf("large-%d", i)}, Data: large}
	})
	spread(t, configs, func(i int) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: others.name, Name: fmt.Sprintf("large-%d", i)}, BinaryData: large}
	})
	spread(t, pods, func(i int) client.Object {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: others.name, Name: fmt.Sprintf("foreign-%d", i), Annotations: map[string]string{"blob": strings.Repeat("x", 20<<10)}},
			Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "x"}}},
		}
	})
	second := p.session("second", "hang")
	second.reaches(running)
	after := settledMemory(t, operator)
	t.Logf("the operator held %d MiB, and %d MiB beside %d Secrets and %d ConfigMaps of 100 KiB and %d pods", before>>20, after>>20, secrets, configs, pods)
	if after-before > most {
		t.Errorf("the operator holds %d MiB more for what is not its own", (after-before)>>20)
	}
}

// spread creates many objects, several at the same time.
func spread(t *testing.T, n int, object func(int) client.Object) {
	t.Helper()
	slots, failures := make(chan struct{}, 10), make(chan error, n)
	for i := range n {
		slots <- struct{}{}
		go func() {
			failures <- suite.admin.Create(context.Background(), object(i))
			<-slots
		}()
	}
	for range n {
		if err := <-failures; err != nil {
			t.Fatal(err)
		}
	}
}

// settledMemory is the least of some measurements: garbage comes and goes.
func settledMemory(t *testing.T, operator *rig.Process) int64 {
	t.Helper()
	least := int64(0)
	for range 10 {
		time.Sleep(500 * time.Millisecond)
		now, err := operator.Memory()
		if err != nil {
			t.Fatal(err)
		}
		if least == 0 || now < least {
			least = now
		}
	}
	return least
}

// runProcess runs the operator as a program of its own, with the access that all operators here have.
func runProcess(t *testing.T, name string, flags ...string) *rig.Process {
	t.Helper()
	if shared.run != nil {
		t.Fatal("the shared operator runs already: a test with a program of its own is not parallel")
	}
	who := types.NamespacedName{Namespace: suite.access.namespace, Name: suite.access.account}
	log := filepath.Join(t.TempDir(), name+".log")
	operator, err := suite.cluster.RunOperatorAs(t.Context(), who, log, map[string]string{"GOMEMLIMIT": "400MiB"}, append(flags, everyFlag()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-operator.Ended():
		default:
			if err := operator.Stop(); err != nil {
				t.Error(err)
			}
		}
		if !t.Failed() {
			return
		}
		if text, err := os.ReadFile(log); err == nil {
			t.Logf("the end of the log of %s:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	return operator
}
