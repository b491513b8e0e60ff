package metrics

// Libraries lists those metrics of controller-runtime, client-go and Go that a person needs who runs
// the operator. They are served beside the operator's own, by every replica.
var Libraries = []Metric{
	{Name: "controller_runtime_reconcile_total", Type: Counter, Labels: []string{"controller", "result"},
		Meaning: "passes of each controller by result; result=error over all is the share of passes that fail, of projects and namespaces as well"},
	{Name: "controller_runtime_reconcile_panics_total", Type: Counter, Labels: []string{"controller"},
		Meaning: "passes that broke off by a fault in the operator; anything above 0 is a bug to report"},
	{Name: "controller_runtime_reconcile_timeouts_total", Type: Counter, Labels: []string{"controller"},
		Meaning: "passes that were given up after 30 s, as when the API server does not answer"},
	{Name: "controller_runtime_active_workers", Type: Gauge, Labels: []string{"controller"},
		Meaning: "workers that are busy; all of them for long means that MAX_CONCURRENT_RECONCILES is too low, or that the API server is slow"},
	{Name: "controller_runtime_max_concurrent_reconciles", Type: Gauge, Labels: []string{"controller"},
		Meaning: "how many workers a controller has, to compare the active ones with"},
	{Name: "workqueue_depth", Type: Gauge, Labels: []string{"controller", "name", "priority"},
		Meaning: "objects that wait for a worker; on the replica that leads it should come back to 0, the others have them ready for their turn"},
	{Name: "workqueue_queue_duration_seconds", Type: Histogram, Labels: []string{"controller", "name"},
		Meaning: "how long objects wait for a worker"},
	{Name: "workqueue_unfinished_work_seconds", Type: Gauge, Labels: []string{"controller", "name"},
		Meaning: "seconds of work under way; grows without end when workers hang"},
	{Name: "workqueue_retries_total", Type: Counter, Labels: []string{"controller", "name"},
		Meaning: "objects that were put back after an error"},
	{Name: "rest_client_requests_total", Type: Counter, Labels: []string{"code", "host", "method"},
		Meaning: "requests to the API server by answer; 403 is a right that is missing, 429 an API server that defends itself"},
	{Name: "leader_election_master_status", Type: Gauge, Labels: []string{"name"},
		Meaning: "1 on the replica that holds the lock of leader election; absent without --leader-elect"},
	{Name: "process_resident_memory_bytes", Type: Gauge,
		Meaning: "memory of the operator, to compare with its limit"},
	{Name: "process_cpu_seconds_total", Type: Counter,
		Meaning: "processor time of the operator"},
	{Name: "go_goroutines", Type: Gauge,
		Meaning: "what the operator does at once; it stays level over days"},
}
