package histories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambient-code/agentic-operator/controllers"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

// errKilled is what the calls of an operator end with that was killed.
var errKilled = errors.New("the operator was killed")

// call is a call of a pass that waits for its turn.
type call struct {
	process *process
	// what is the verb, the kind and the name; writes are told apart as they can be in doubt.
	what  string
	write bool
	// cached says that no request goes out.
	cached bool
	do     func() error
	// answered is called when the operator gets to know that the call went well.
	answered func()
	done     chan error
}

// wait is when something is to be looked at, and how often that failed since it went well.
type wait struct {
	at      time.Time
	retries int
}

// item is what a controller is to look at.
type item struct {
	controller string
	key        types.NamespacedName
}

func (i item) String() string { return i.controller + " " + i.key.String() }

// The controllers whose reconcilers run in histories.
const (
	ofSessions   = "session"
	ofProjects   = "settings"
	ofNamespaces = "namespace"
)

// process is a running operator.
type process struct {
	h          *history
	id         int
	caches     *caches
	reconciler map[string]reconcile.Reconciler
	registry   *prometheus.Registry
	queue      map[item]wait
	killed     bool
	pending    []*call
	wakers     map[string]func(context.Context, client.Object) []reconcile.Request
	// busy is what a pass is made over.
	busy map[item]bool
}

// newProcess starts an operator, with caches that are filled up to about now.
func (h *history) newProcess() *process {
	h.processes++
	p := &process{h: h, id: h.processes, registry: prometheus.NewRegistry(), queue: map[item]wait{}, busy: map[item]bool{}}
	p.caches = newCaches(h.api, h.selections, func(object client.Object) { p.wake(object) })
	set := metrics.New(p.registry)
	set.Admit(project)
	h.registries = append(h.registries, p.registry)
	cached, live, seen := &cachedClient{liveClient{p: p}}, &liveClient{p: p}, &directClient{caches: p.caches}
	sessions := &controllers.AgenticSessionReconciler{
		Client: cached, Seen: seen, Live: live, Own: live, Config: settings, Metrics: set, Events: recorder{}, Clock: h.clock, Indexed: true,
	}
	projects := &controllers.ProjectSettingsReconciler{Client: cached, Live: live, Own: live, Config: settings, Clock: h.clock}
	// With metrics of its own: it forgets the counters of a namespace that is no longer managed.
	namespaces := &controllers.NamespaceReconciler{Client: cached, Config: settings, Metrics: metrics.New(prometheus.NewRegistry())}
	p.reconciler = map[string]reconcile.Reconciler{ofSessions: sessions, ofProjects: projects, ofNamespaces: namespaces}
	mapping := &controllers.AgenticSessionReconciler{Seen: seen, Client: seen, Config: settings, Indexed: true}
	p.wakers = map[string]func(context.Context, client.Object) []reconcile.Request{ofSessions: mapping.Woken(), ofProjects: projects.Woken(seen), ofNamespaces: namespaces.Woken()}
	return p
}

// recorder keeps no Events: nothing may rest on them.
type recorder struct{}

func (recorder) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// wake queues what a change concerns, by the operator's own mappings.
func (p *process) wake(object client.Object) {
	for controller, waker := range p.wakers {
		for _, request := range waker(context.Background(), object) {
			p.enqueue(item{controller, request.NamespacedName}, p.h.now())
		}
	}
}

// enqueue is due at the earlier of the moments that were asked for.
func (p *process) enqueue(what item, at time.Time) {
	known, queued := p.queue[what]
	if !queued || known.at.IsZero() || at.Before(known.at) {
		known.at = at
	}
	p.queue[what] = known
}

// due is one of what is to be looked at by now.
func (p *process) due() (item, bool) {
	var ready []item
	for what, w := range p.queue {
		if !w.at.IsZero() && !w.at.After(p.h.now()) && !p.busy[what] {
			ready = append(ready, what)
		}
	}
	if len(ready) == 0 {
		return item{}, false
	}
	slices.SortFunc(ready, func(a, b item) int { return strings.Compare(a.String(), b.String()) })
	return ready[p.h.pick(len(ready))], true
}

// pass is a pass that has begun.
type pass struct {
	process *process
	item    item
	result  ctrl.Result
	err     error
	fault   any
	over    bool
	calls   int
	// killAt is the call at which the operator is killed; 0 for none.
	killAt int
}

// begin starts a pass.
func (p *process) begin(what item) *pass {
	h := p.h
	h.passes++
	w := p.queue[what]
	w.at = time.Time{}
	p.queue[what] = w
	p.busy[what] = true
	made := &pass{process: p, item: what}
	ctx := ctrl.LoggerInto(context.Background(), logr.Discard())
	go func() {
		defer func() {
			made.fault = recover()
			made.over = true
		}()
		made.result, made.err = p.reconciler[what.controller].Reconcile(ctx, reconcile.Request{NamespacedName: what.key})
	}()
	return made
}

// end does what the queue of a controller does after a pass.
func (m *pass) end() {
	p, h := m.process, m.process.h
	delete(p.busy, m.item)
	switch {
	case m.fault != nil:
		h.complain("the operator panicked: %v", m.fault)
	case p.killed:
	case m.err != nil:
		w := p.queue[m.item]
		delay := min(200*time.Millisecond<<min(w.retries, 20), 30*time.Second)
		w.retries++
		p.queue[m.item] = w
		p.enqueue(m.item, h.now().Add(delay))
		h.note("  pass of %s fails: %v", m.item.key.Name, m.err)
	default:
		w := p.queue[m.item]
		w.retries = 0
		p.queue[m.item] = w
		if m.result.RequeueAfter > 0 {
			p.enqueue(m.item, h.now().Add(m.result.RequeueAfter))
		}
	}
}

// ask has a call wait for its turn.
func (p *process) ask(c *call) error {
	c.process, c.done = p, make(chan error, 1)
	p.h.calls <- c
	return <-c.done
}

// name is how the operator signs its writes.
func (p *process) name() string { return fmt.Sprintf("operator %d", p.id) }

// liveClient asks the API server.
type liveClient struct {
	client.Client
	p *process
}

func describe(verb string, object any, name string) string {
	return verb + " " + kindOf(object) + " " + name
}

func (c *liveClient) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return c.p.ask(&call{what: describe("get", object, key.Name), do: func() error {
		found, err := c.p.h.api.get(kindOf(object), key)
		if err == nil {
			into(found, object)
		}
		return err
	}})
}

func (c *liveClient) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	return c.p.ask(&call{what: describe("list", list, ""), do: func() error {
		var found []client.Object
		for _, object := range c.p.h.api.list(kindOf(list)) {
			if object.GetNamespace() == asked.Namespace && (asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(object.GetLabels()))) {
				found = append(found, object)
			}
		}
		return fill(list, found)
	}})
}

func (c *liveClient) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	waited := !(&client.CreateOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency
	return c.write(describe("create", object, object.GetName()), object, waited, func() error {
		return c.p.h.api.create(c.p.name(), object)
	})
}

func (c *liveClient) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	waited := !(&client.PatchOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency
	return c.write(describe("patch", object, object.GetName()), object, waited, func() error {
		return c.p.h.api.patch(c.p.name(), object, patch, false)
	})
}

func (c *liveClient) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	asked := (&client.DeleteOptions{}).ApplyOptions(options)
	key := client.ObjectKeyFromObject(object)
	return c.write(describe("delete", object, object.GetName()), object, true, func() error {
		return c.p.h.api.remove(c.p.name(), kindOf(object), key, asked)
	})
}

// write makes a write that later reads of the object wait for.
func (c *liveClient) write(what string, object client.Object, waited bool, do func() error) error {
	kind, key := kindOf(object), client.ObjectKeyFromObject(object)
	return c.p.ask(&call{what: what, write: true, do: do, answered: func() {
		if waited {
			c.p.caches.wrote(kind, key)
		}
	}})
}

// cachedClient writes to the API server and reads from the caches.
type cachedClient struct{ liveClient }

func (c *cachedClient) Get(_ context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	waits := !(&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency
	return c.p.ask(&call{cached: true, do: func() error { return c.p.caches.get(key, object, waits) }})
}

func (c *cachedClient) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	return c.p.ask(&call{cached: true, do: func() error {
		return c.p.caches.list(list, asked, !asked.DisableReadYourWritesConsistency)
	}})
}

// Status writes the status.
func (c *cachedClient) Status() client.SubResourceWriter { return &subresource{c: c} }

// SubResource writes a status or asks for a token.
func (c *cachedClient) SubResource(string) client.SubResourceClient { return &subresource{c: c} }

// Scheme knows the kinds that the operator works with.
func (c *cachedClient) Scheme() *runtime.Scheme { return scheme }

// GroupVersionKindFor looks a kind up there.
func (c *cachedClient) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, scheme)
}

type subresource struct {
	client.SubResourceClient
	c *cachedClient
}

// Create asks for a token of a ServiceAccount.
func (s *subresource) Create(_ context.Context, object, asked client.Object, _ ...client.SubResourceCreateOption) error {
	p := s.c.p
	return p.ask(&call{what: describe("token", object, object.GetName()), write: true, do: func() error {
		account, err := p.h.api.get("ServiceAccount", client.ObjectKeyFromObject(object))
		if err != nil {
			return err
		}
		if account.GetUID() != object.GetUID() {
			return apierrors.NewConflict(resource("ServiceAccount"), object.GetName(), errors.New("the UID differs"))
		}
		request := asked.(*authenticationv1.TokenRequest)
		p.h.tokens++
		request.CreationTimestamp = metav1.NewTime(p.h.now())
		request.Status.Token = fmt.Sprintf("token %d", p.h.tokens)
		request.Status.ExpirationTimestamp = metav1.NewTime(p.h.now().Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second))
		return nil
	}})
}

// Patch writes a status.
func (s *subresource) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.c.write(describe("status", object, object.GetName()), object, true, func() error {
		return s.c.p.h.api.patch(s.c.p.name(), object, patch, true)
	})
}

// directClient reads from the caches at once: for what wakes sessions, which is no part of a pass.
type directClient struct {
	client.Client
	caches *caches
}

// Get reads from a cache.
func (c *directClient) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return c.caches.get(key, object, false)
}

// List reads from a cache.
func (c *directClient) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.caches.list(list, (&client.ListOptions{}).ApplyOptions(options), false)
}
