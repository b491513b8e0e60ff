// Package histories runs the operator's real reconcilers of sessions, settings and namespaces through random
// histories and checks after every step what must always hold.
//
// A history is made from a seed and from nothing else: the same seed gives the same history, whatever
// the machine does. In it, sessions that continue one another are started, stopped, edited and deleted, and
// so are settings; a Job controller, a kubelet and a garbage collector do their work or are late; people
// remove Jobs, pods and volume claims by hand; a quota refuses objects; the operator's caches lag behind the
// API server; calls fail, before or after they took effect; the operator is killed in the middle of a pass
// or paused while another takes over; the clock jumps.
//
// None of that is a real server: a history takes milliseconds, so thousands fit into a test run, which
// no cluster could do. What the model of the API server gets wrong, the integration suite would find.
//
//   - api_test.go is the API server: versions, UIDs, generations, preconditions, finalizers.
//   - cache_test.go is what the operator sees of it: with the selectors, transforms and the
//     read-your-writes of its real caches.
//   - process_test.go is a running operator. A pass runs in goroutines of its own, but each of its calls
//     waits for its turn (testing/synctest tells when all wait), so that the seed decides which of those
//     that are made at the same time comes first, and what happens in between.
//   - cluster_test.go is the Job controller, the kubelet and the garbage collector.
//   - people_test.go is what people and programs do.
//   - project_test.go is what they do to settings, and what must come of it.
//   - judge_test.go holds the invariants.
//   - chains_test.go and outage_test.go are histories that somebody thought of.
//   - histories_test.go makes the histories and tells how to repeat one.
package histories
