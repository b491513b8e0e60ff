package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/internal/metrics"
)

const createdInP = "ambient_sessions_total{namespace=p}"

func create(set *metrics.Set, namespace string) {
	set.Changed(&metrics.Change{Namespace: namespace, Was: &v1alpha1.AgenticSessionStatus{},
		Is: &v1alpha1.AgenticSessionStatus{ObservedGeneration: 1, Phase: v1alpha1.PhasePending}})
}

// of lists the samples of a namespace.
func of(t *testing.T, registry *prometheus.Registry, namespace string) []string {
	t.Helper()
	var keys []string
	for key := range values(t, registry) {
		if strings.Contains(key, "namespace="+namespace+",") || strings.Contains(key, "namespace="+namespace+"}") {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestASeriesBeginsAtZeroAndGoesWithItsNamespace(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	set.Leads(true)
	set.CountSessions(slices.Values([]*v1alpha1.AgenticSession{}), func() time.Time { return now })
	set.Admit("p")
	set.Admit("other")
	begun := values(t, registry)
	for _, key := range of(t, registry, "p") {
		if value := begun[key]; value != 0 {
			t.Errorf("%s begins at %v", key, value)
		}
	}
	for _, edge := range []string{"from_phase=Stopping,namespace=p,to_phase=Pending", "from_phase=Pending,namespace=p,to_phase=Running"} {
		if slices.Contains(of(t, registry, "p"), "ambient_session_phase_transitions_total{"+edge+"}") {
			t.Errorf("%s is no phase change", edge)
		}
	}
	beside := len(of(t, registry, "other"))
	create(set, "p")
	set.Admit("p")
	if got := values(t, registry)[createdInP]; got != 1 {
		t.Errorf("admitted once more, it is %v", got)
	}
	set.Forget("p")
	set.Forget("p")
	if left := of(t, registry, "p"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if got := len(of(t, registry, "other")); got != beside {
		t.Errorf("the other namespace has %d samples, had %d", got, beside)
	}
}

// TestWhatComesBeforeTheNamespace: the cache of sessions may be ahead of that of namespaces.
func TestWhatComesBeforeTheNamespace(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	create(set, "p")
	set.Erred("p", "", "timeout")
	if got := of(t, registry, "p"); len(got) > 0 {
		t.Errorf("not managed, but there is %v", got)
	}
	set.Admit("p")
	if got := values(t, registry); got[createdInP] != 1 || got["ambient_session_errors_total{error_type=timeout,namespace=p,phase=Pending}"] != 1 {
		t.Errorf("it is lost: %v", got)
	}
	set.Forget("p")
	set.Admit("p")
	if got := values(t, registry)[createdInP]; got != 0 {
		t.Errorf("it was counted again: %v", got)
	}
}

// TestNamespacesThatAreNeverManagedCostLittle: whoever may make sessions there cannot fill the memory.
func TestNamespacesThatAreNeverManagedCostLittle(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	for i := range 30000 {
		create(set, fmt.Sprintf("p%d", i%100))
	}
	for i := range 100 {
		set.Admit(fmt.Sprintf("p%d", i))
	}
	sum := 0.0
	for key, value := range values(t, registry) {
		if strings.HasPrefix(key, "ambient_sessions_total{") {
			sum += value
		}
	}
	if sum != 10000 {
		t.Errorf("%v were kept, want 10000", sum)
	}
	create(set, "p0")
	create(set, "q")
	set.Admit("q")
	if got := values(t, registry)["ambient_sessions_total{namespace=q}"]; got != 1 {
		t.Errorf("there is no room again: %v", got)
	}
}

// TestNothingIsInheritedFromANamesake: what was held back of a namespace that was never managed goes
// with it, and one namespace does not use up the room of the others.
func TestNothingIsInheritedFromANamesake(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	for range 20000 {
		create(set, "p")
	}
	create(set, "q")
	set.Admit("q")
	if got := values(t, registry)["ambient_sessions_total{namespace=q}"]; got != 1 {
		t.Errorf("there was no room for another namespace: %v", got)
	}
	set.Forget("p")
	set.Admit("p")
	if got := values(t, registry)[createdInP]; got != 0 {
		t.Errorf("a new namespace begins at %v", got)
	}
}

func TestAtTheSameTime(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				create(set, "p")
			}
		})
	}
	wait.Go(func() { set.Admit("p") })
	wait.Go(func() { values(t, registry) })
	wait.Wait()
	if got := values(t, registry)[createdInP]; got != 800 {
		t.Errorf("counted %v, want 800", got)
	}
}

func TestSessionsAreCountedAtTheScrape(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	var all []*v1alpha1.AgenticSession
	add := func(namespace string, created time.Duration, status v1alpha1.AgenticSessionStatus) {
		all = append(all, &v1alpha1.AgenticSession{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, CreationTimestamp: *at(created)}, Status: status})
	}
	add("p", time.Minute, v1alpha1.AgenticSessionStatus{})
	add("p", 2*time.Minute, v1alpha1.AgenticSessionStatus{Phase: v1alpha1.PhasePending})
	add("p", time.Hour, v1alpha1.AgenticSessionStatus{Phase: v1alpha1.PhaseCreating, ProvisionedTime: at(5 * time.Second)})
	add("p", time.Hour, v1alpha1.AgenticSessionStatus{Phase: v1alpha1.PhaseCompleted})
	add("not-managed", time.Hour, v1alpha1.AgenticSessionStatus{})
	set.CountSessions(func(yield func(*v1alpha1.AgenticSession) bool) { slices.Values(all)(yield) }, func() time.Time { return now })
	set.Admit("p")
	set.Admit("empty")
	const key, oldest = "ambient_sessions{namespace=%s,phase=%s}", "ambient_session_oldest_age_seconds{namespace=%s,phase=%s}"
	if _, there := values(t, registry)[fmt.Sprintf(key, "p", "Pending")]; there {
		t.Error("a replica that does not lead counts sessions")
	}
	set.Leads(true)
	check := func(want map[string]float64) {
		t.Helper()
		got := values(t, registry)
		for key, want := range want {
			if value, there := got[key]; !there || value != want {
				t.Errorf("%s is %v (%t), want %v", key, value, there, want)
			}
		}
	}
	check(map[string]float64{
		fmt.Sprintf(key, "p", "Pending"): 2, fmt.Sprintf(key, "p", "Creating"): 1, fmt.Sprintf(key, "p", "Running"): 0,
		fmt.Sprintf(key, "p", "Completed"): 1, fmt.Sprintf(key, "empty", "Pending"): 0,
		fmt.Sprintf(oldest, "p", "Pending"): 120, fmt.Sprintf(oldest, "p", "Creating"): 5, fmt.Sprintf(oldest, "p", "Stopping"): 0,
		"ambient_operator_leader{}": 1,
	})
	if got := of(t, registry, "not-managed"); len(got) > 0 {
		t.Errorf("a namespace that is not managed has %v", got)
	}
	all = all[3:]
	check(map[string]float64{fmt.Sprintf(key, "p", "Pending"): 0, fmt.Sprintf(oldest, "p", "Pending"): 0})
	set.Leads(false)
	check(map[string]float64{"ambient_operator_leader{}": 0})
	if _, there := values(t, registry)[fmt.Sprintf(key, "p", "Pending")]; there {
		t.Error("a replica that no longer leads counts sessions")
	}
}

func TestTheNextExpiryOfATokenAndTheWiring(t *testing.T) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	const key, part = "ambient_token_next_expiry_timestamp_seconds{}", "ambient_monitoring_wired{part=dashboard}"
	a, b := types.NamespacedName{Namespace: "p", Name: "a"}, types.NamespacedName{Namespace: "p", Name: "b"}
	step := func(what string, want float64, there bool) {
		t.Helper()
		if got, is := values(t, registry)[key]; is != there || got != want {
			t.Errorf("%s: it is %v (%t), want %v (%t)", what, got, is, want, there)
		}
	}
	set.TokenExpires(a, now.Add(time.Hour))
	step("on a replica that does not lead", 0, false)
	if _, there := values(t, registry)[part]; there {
		t.Error("a replica that does not lead tells of the wiring")
	}
	set.Leads(true)
	step("one", float64(now.Add(time.Hour).Unix()), true)
	set.TokenExpires(b, now.Add(time.Minute))
	step("two", float64(now.Add(time.Minute).Unix()), true)
	set.TokenExpires(b, now.Add(2*time.Hour))
	step("renewed", float64(now.Add(time.Hour).Unix()), true)
	set.TokenExpires(a, time.Time{})
	set.TokenExpires(b, time.Time{})
	set.TokenExpires(b, time.Time{})
	step("none", 0, false)
	if got, there := values(t, registry)[part]; !there || got != 0 {
		t.Errorf("%s is %v (%t) at first", part, got, there)
	}
	set.Wired(metrics.PartDashboard, true)
	set.Wired("something else", true)
	if got := values(t, registry); got[part] != 1 || got["ambient_monitoring_wired{part=quick_start}"] != 0 {
		t.Errorf("the wiring is told as %v", got)
	}
}

// BenchmarkScrape is of ten thousand sessions in five hundred projects.
func BenchmarkScrape(b *testing.B) {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	var all []*v1alpha1.AgenticSession
	for i := range 10000 {
		namespace := fmt.Sprintf("project-%d", i%500)
		set.Admit(namespace)
		all = append(all, &v1alpha1.AgenticSession{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, CreationTimestamp: metav1.NewTime(now)},
			Status:     v1alpha1.AgenticSessionStatus{Phase: v1alpha1.Phases[i%len(v1alpha1.Phases)].Phase},
		})
		set.TokenExpires(types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}, now.Add(time.Duration(i)))
	}
	set.Leads(true)
	set.CountSessions(slices.Values(all), func() time.Time { return now })
	b.Run("sessions", func(b *testing.B) {
		alone := prometheus.NewRegistry()
		alone.MustRegister(set.Reader())
		b.ReportAllocs()
		for b.Loop() {
			if _, err := alone.Gather(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("everything", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := registry.Gather(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
