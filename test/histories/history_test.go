package histories

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/config"
	"github.com/ambient-code/agentic-operator/internal/session"
)

const project = "project"

var (
	scheme   = newScheme()
	settings = newSettings()
	selected = selections()
)

func newScheme() *runtime.Scheme {
	made := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(made), v1alpha1.AddToScheme(made)); err != nil {
		panic(err)
	}
	return made
}

func newSettings() *config.Config {
	made, err := config.Load(nil, func(string) string { return "" })
	if err != nil {
		panic(err)
	}
	return made
}

// trouble is how often things go wrong in a history; each has its own.
type trouble struct {
	// refused and lost are calls that fail before and after they took effect, of all calls.
	refused, lost float64
	// killed are passes in which the operator is killed.
	killed float64
	// between are calls before which something else happens.
	between float64
	// lags says that the caches see changes late.
	lags bool
}

// history is one random history.
type history struct {
	random     *rand.Rand
	clock      *testingclock.FakePassiveClock
	api        *api
	selections map[string]selection
	trouble    trouble
	calls      chan *call
	operator   *process
	registries []*prometheus.Registry
	stories    map[string]*story
	// deaf are pods that no kubelet ends; exits is how the runner of a Job ended.
	deaf  map[types.UID]bool
	exits map[types.UID]int32
	// taken are Jobs that were being deleted when their runner was ended.
	taken map[types.UID]bool
	// recorded are the Jobs that a status told of, begun those that an operator made.
	recorded map[string]bool
	begun    map[types.UID]bool
	// ledger counts phase changes, unanswered those whose writer never got the answer.
	ledger, unanswered map[session.Edge]int
	// ended says that the namespace is being deleted; claimLost that somebody deleted a volume claim;
	// hidden that somebody took the label off a pod.
	ended, claimLost, hidden bool
	// full are the kinds of which the project's quota allows no more.
	full map[string]bool
	// began is the version at which the pass in progress began.
	began int64

	processes, passes, pods, tokens, writes, steps int
	happened                                       map[string]int
	notes, complaints                              []string
}

func newHistory(seed uint64, selections map[string]selection) *history {
	h := &history{
		random: rand.New(rand.NewPCG(seed, 1)), selections: selections, calls: make(chan *call, 64),
		clock:   testingclock.NewFakePassiveClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)),
		stories: map[string]*story{}, deaf: map[types.UID]bool{}, exits: map[types.UID]int32{}, taken: map[types.UID]bool{}, recorded: map[string]bool{}, begun: map[types.UID]bool{},
		ledger: map[session.Edge]int{}, unanswered: map[session.Edge]int{}, happened: map[string]int{}, full: map[string]bool{},
	}
	h.trouble = trouble{
		refused: []float64{0, 0, 0.02, 0.1}[h.pick(4)],
		lost:    []float64{0, 0, 0.02, 0.1}[h.pick(4)],
		killed:  []float64{0, 0, 0.1, 0.4}[h.pick(4)],
		between: []float64{0, 0.05, 0.3}[h.pick(3)],
		lags:    h.chance(0.7),
	}
	h.api = newAPI(h.now)
	h.api.written, h.api.refuses = h.judge, h.refuses
	for _, name := range []string{project, settings.Namespace} {
		h.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	h.heal()
	h.operator = h.newProcess()
	h.begin("one", "")
	if h.chance(0.4) {
		h.begin("two", []string{"", "one", "one"}[h.pick(3)])
		if h.chance(0.5) {
			h.begin("three", []string{"", "one", "two", "two"}[h.pick(4)])
		}
	}
	return h
}

func (h *history) now() time.Time          { return h.clock.Now() }
func (h *history) pick(n int) int          { return h.random.IntN(n) }
func (h *history) chance(p float64) bool   { return p > 0 && h.random.Float64() < p }
func (h *history) note(f string, a ...any) { h.notes = append(h.notes, fmt.Sprintf(f, a...)) }
func (h *history) count(what string)       { h.happened[what]++ }

func (h *history) complain(f string, a ...any) {
	said := fmt.Sprintf(f, a...)
	h.note("FAULT: %s", said)
	h.complaints = append(h.complaints, said)
}

// drive makes a pass, deciding whose call is next and what becomes of it.
func (h *history) drive(m *pass) {
	p := m.process
	h.began = h.api.version
	if h.chance(h.trouble.killed) {
		m.killAt = 1 + h.pick([]int{3, 12}[h.pick(2)])
	}
	for {
		synctest.Wait()
		for len(h.calls) > 0 {
			p.pending = append(p.pending, <-h.calls)
		}
		if len(p.pending) == 0 {
			break
		}
		slices.SortStableFunc(p.pending, func(a, b *call) int { return strings.Compare(a.what, b.what) })
		i := 0
		if len(p.pending) > 1 {
			i = h.pick(len(p.pending))
		}
		next := p.pending[i]
		p.pending = slices.Delete(p.pending, i, i+1)
		next.done <- h.serve(m, next)
	}
	m.end()
	if p.killed {
		h.note("the operator is started again")
		h.operator = h.newProcess()
		h.fillCaches()
	}
}

// serve makes a call, or not.
func (h *history) serve(m *pass, c *call) error {
	switch {
	case c.process.killed:
		return errKilled
	case c.cached:
		return c.do()
	case h.chance(h.trouble.between):
		h.count("things between two calls")
		h.happen()
	}
	m.calls++
	if m.calls == m.killAt {
		c.process.killed = true
		h.count("operators killed")
		if h.chance(0.5) {
			h.note("  the operator is killed before %s", c.what)
			return errKilled
		}
		h.note("  the operator is killed after %s", c.what)
		h.unheard(c)
		return errKilled
	}
	if h.chance(h.trouble.refused) {
		h.count("calls refused")
		h.note("  %s fails", c.what)
		if !strings.HasPrefix(c.what, "status AgenticSession") {
			return refusals[h.pick(len(refusals)-1)]
		}
		return refusals[h.pick(len(refusals))]
	}
	if c.write && h.chance(h.trouble.lost) {
		h.count("answers lost")
		h.note("  the answer to %s is lost", c.what)
		h.unheard(c)
		return apierrors.NewTimeoutError("the answer was lost", 1)
	}
	err := c.do()
	if err == nil && c.answered != nil {
		c.answered()
	}
	if apierrors.IsConflict(err) {
		h.count("conflicts")
	}
	return err
}

var refusals = []error{
	apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
	apierrors.NewTooManyRequests("try again", 1),
	apierrors.NewServerTimeout(resource("x"), "write", 1),
	errors.New("connection refused"),
	// A write that names no version conflicts only with one that makes an event, and so does one that takes
	// a conflict for that.
	apierrors.NewConflict(resource("x"), "x", errors.New("the object has been modified")),
}

// unheard makes a call whose answer nobody hears.
func (h *history) unheard(c *call) {
	before := map[session.Edge]int{}
	for edge, n := range h.ledger {
		before[edge] = n
	}
	if err := c.do(); err != nil {
		return
	}
	for edge, n := range h.ledger {
		h.unanswered[edge] += n - before[edge]
	}
}

// happen has one thing happen that is not the operator's doing.
func (h *history) happen() {
	h.steps++
	switch n := h.pick(100); {
	case n < 22:
		h.deed()
	case n < 42:
		h.oneOf(copies[*batchv1.Job](h, "Job"), h.jobStep)
	case n < 66:
		h.onePod()
	case n < 72:
		if !h.collect() {
			h.endNamespace()
		}
	case n < 76:
		h.surroundings()
	default:
		h.catchUp()
	}
}

// catchUp lets some of the caches see more of what happened.
func (h *history) catchUp() {
	caches := h.operator.caches
	for _, kind := range caches.kinds() {
		switch behind := caches.behind(kind); {
		case behind == 0 || h.chance(0.3):
		case h.chance(0.7):
			caches.advance(kind, behind)
		default:
			caches.advance(kind, 1+h.pick(behind))
		}
	}
}

func (h *history) oneOf(jobs []*batchv1.Job, step func(*batchv1.Job) bool) {
	if len(jobs) > 0 {
		step(jobs[h.pick(len(jobs))])
	}
}

func (h *history) onePod() {
	if pods := copies[*corev1.Pod](h, "Pod"); len(pods) > 0 {
		h.podStep(pods[h.pick(len(pods))], h.chance(0.3))
	}
}

// deed has people do something to a session.
func (h *history) deed() {
	names := h.names()
	name := names[h.pick(len(names))]
	s := h.session(name)
	if s == nil {
		if !h.ended && h.chance(0.5) {
			h.begin(name, append(names, "", "")[h.pick(len(names)+2)])
		}
		return
	}
	total := 0
	for i := range deeds {
		total += deeds[i].weight
	}
	n := h.pick(total)
	for i := range deeds {
		if n -= deeds[i].weight; n < 0 {
			h.count("deeds of people")
			deeds[i].do(h, s)
			return
		}
	}
}

// work has the operator make a pass if one is due.
func (h *history) work() bool {
	if !h.trouble.lags {
		h.fillCaches()
	} else if h.chance(0.5) {
		h.catchUp()
	}
	what, due := h.operator.due()
	if !due {
		return false
	}
	h.note("%s looks at %s %s", h.operator.name(), what.controller, what.key.Name)
	h.drive(h.operator.begin(what))
	return true
}

func (h *history) fillCaches() {
	for _, kind := range h.operator.caches.kinds() {
		h.operator.caches.advance(kind, h.operator.caches.behind(kind))
	}
}

func (h *history) pass(d time.Duration) {
	h.note("%s pass", d)
	h.clock.SetTime(h.now().Add(d))
}

// go_ lets things happen at random.
func (h *history) unfold(steps int) {
	for range steps {
		switch n := h.pick(100); {
		case n < 45:
			h.work()
		case n < 52:
			h.pass(time.Duration(200+h.pick(5000)) * time.Millisecond)
		case n < 54:
			h.pass([]time.Duration{time.Minute, 6 * time.Minute, 40 * time.Minute, 3 * time.Hour, 25 * time.Hour}[h.pick(5)])
			h.count("jumps of the clock")
		case n < 55:
			h.note("the operator is replaced")
			h.count("operators replaced")
			h.operator = h.newProcess()
			for _, kind := range h.operator.caches.kinds() {
				h.operator.caches.advance(kind, max(0, h.operator.caches.behind(kind)-h.pick(3)))
			}
		default:
			h.happen()
		}
		if len(h.complaints) > 0 {
			return
		}
	}
}

// settle lets everything that is under way come to an end, without further trouble. With ends,
// runners that are up end.
func (h *history) settle(ends bool) {
	h.note("things settle, ends=%t", ends)
	h.trouble = trouble{}
	h.heal()
	passes, until := h.passes, h.now().Add(15*time.Minute)
	for rounds := 0; len(h.complaints) == 0; rounds++ {
		if h.passes-passes > 200*(2+len(h.stories)) || rounds > 5000 {
			h.complain("%d passes and %d rounds, and the operator does not come to rest", h.passes-passes, rounds)
			return
		}
		if h.work() || h.clusterWorks(ends) {
			continue
		}
		h.judgeWaits()
		next := h.nextWake()
		if next.IsZero() || next.After(until) {
			next = until
		}
		if !h.now().Before(until) {
			break
		}
		h.pass(max(time.Second, next.Sub(h.now())))
	}
	if len(h.complaints) == 0 {
		h.judgeRest()
		h.judgeQuiet()
	}
}

// clusterWorks does one thing that a controller or kubelet has to do.
func (h *history) clusterWorks(ends bool) bool {
	for _, job := range copies[*batchv1.Job](h, "Job") {
		if h.jobStep(job) {
			return true
		}
	}
	for _, pod := range copies[*corev1.Pod](h, "Pod") {
		if h.podStep(pod, ends) {
			return true
		}
	}
	return h.collect() || h.endNamespace()
}

// nextWake is the first moment at which the operator wants to look again.
func (h *history) nextWake() time.Time {
	var first time.Time
	for _, w := range h.operator.queue {
		if !w.at.IsZero() && (first.IsZero() || w.at.Before(first)) {
			first = w.at
		}
	}
	return first
}

// names are those of the sessions that there are or were.
func (h *history) names() []string { return slices.Sorted(maps.Keys(h.stories)) }

// unasked makes a pass that nobody asked for, and says how many writes it made.
func (h *history) unasked(controller string, key types.NamespacedName) int {
	writes := h.writes
	h.note("an unasked look at %s %s", controller, key.Name)
	h.drive(h.operator.begin(item{controller, key}))
	return h.writes - writes
}

// judgeWaits: what a session waits for wakes it, and not only the look that makes up for what a watch did
// not tell. Of pods whose label was taken off nothing tells, and a pass that failed is tried again.
func (h *history) judgeWaits() {
	for _, name := range h.names() {
		s, key := h.session(name), types.NamespacedName{Namespace: project, Name: name}
		if s == nil || s.DeletionTimestamp != nil || h.ended || h.operator.queue[item{ofSessions, key}].retries > 0 {
			continue
		}
		if phase := orPending(s.Status.Phase); phase != v1alpha1.PhasePending && phase != v1alpha1.PhaseStopping || h.hidden {
			continue
		}
		if at := h.operator.queue[item{ofSessions, key}].at; !at.IsZero() && at.Sub(h.now()) < 5*time.Second {
			continue // a pass is about to be made
		}
		if writes := h.unasked(ofSessions, key); writes > 0 {
			h.complain("session %s waits, and an unasked pass over it makes %d writes", name, writes)
		}
	}
}

// judgeQuiet: a pass that nobody asked for changes nothing, so no wake-up was missed.
func (h *history) judgeQuiet() {
	for _, name := range h.names() {
		if h.session(name) == nil || len(h.complaints) > 0 {
			continue
		}
		if writes := h.unasked(ofSessions, types.NamespacedName{Namespace: project, Name: name}); writes > 0 {
			h.complain("the operator rests, and an unasked pass over %s makes %d writes", name, writes)
		}
	}
	for _, what := range []item{{ofProjects, settingsKey}, {ofNamespaces, types.NamespacedName{Name: project}}} {
		if len(h.complaints) > 0 {
			return
		}
		if writes := h.unasked(what.controller, what.key); writes > 0 {
			h.complain("the operator rests, and an unasked pass over %s makes %d writes", what, writes)
		}
	}
}
