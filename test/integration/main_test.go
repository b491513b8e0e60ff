// Package integration tests the operator against a real API server, controller-manager and
// scheduler with simulated nodes. The operator runs in the process of the tests but acts as its
// own ServiceAccount, with exactly the rules in config/rbac.
//
// TestMain (this file) starts one local Kubernetes (cluster_test.go), installs the CRDs and the
// operator's access (install_test.go) and, when all is done, judges the history of every session
// (histories_test.go) and the access that was used (access_audit_test.go). A run of all tests is done
// in parts side by side, each with a cluster (parts_test.go). Tests come in two kinds:
//
//   - those that share one operator begin with share(t): they run in parallel, each in a project
//     (project_test.go) of its own;
//   - those that need an operator of their own (another configuration, none at all, two) start it
//     themselves (operator_test.go) and run one after another before the others.
//
// What a session, its Jobs and its pods went through is kept by a recorder (recorder_test.go), so
// that tests assert on the whole history and not only on its end. Names of tests say which case of
// the list of known faults of such operators they show, where there is one.
//
// Environment: INTEGRATION=required builds what is missing instead of skipping;
// INTEGRATION_KUBECONFIG names a cluster with simulated nodes to use instead of a new one, and
// INTEGRATION_AUDIT_LOG its audit log; INTEGRATION_FLAGS are flags for every operator, and
// "--legacy-watch" has the whole suite show that event source (LEGACY_WATCH=1 make test runs both);
// BURST=1 runs the large burst and SOAK=1 the long rest, the paused leader, the thousand sessions that come
// and go and the large crowd of foreign objects;
// CRASH=all crashes the operator in every way at each write (crash_test.go).
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
	"github.com/ambient-code/agentic-operator/test/record"
	"github.com/ambient-code/agentic-operator/test/rig"
)

// atOnce is how many tests run at the same time: they mostly wait.
const atOnce = "12"

// suite is what all tests share.
var suite struct {
	cluster  *rig.Cluster
	scheme   *runtime.Scheme
	config   *rest.Config // the administrator's
	admin    client.WithWatch
	access   *access
	recorder *record.Recorder
	audit    *auditTrail
	logs     *logTail
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			return failed(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	whole := everything()
	endWithTheFirst()
	others, err := startOthers(ctx)
	defer func() {
		if err := abandon(others); err != nil {
			code = failed(err)
		}
	}()
	if err != nil {
		cancel()
		return failed(err)
	}
	suite.logs = &logTail{}
	ctrl.SetLogger(zap.New(zap.WriteTo(suite.logs), zap.Level(zapcore.InfoLevel), zap.StacktraceLevel(zapcore.DPanicLevel)))
	cluster, err := startCluster(ctx)
	if errors.Is(err, rig.ErrNotBuilt) {
		cancel()
		fmt.Println("integration tests skipped:", err)
		return 0
	}
	if err != nil {
		cancel()
		return failed(err)
	}
	defer func() {
		cancel()
		if err := endCluster(cluster); err != nil {
			code = failed(err)
		}
	}()
	if err := prepare(ctx, cluster); err != nil {
		return failed(err)
	}
	code = m.Run()
	if err := stopShared(); err != nil {
		code = failed(err)
	}
	return judge(code, others, whole)
}

// judge looks at all that happened, in the other parts as well.
func judge(code int, others []*part, whole bool) int {
	if judgeHistories() != 0 {
		code = 1
	}
	used, err := usedAccess()
	if err != nil {
		return failed(err)
	}
	for _, other := range others {
		if err := other.end(used); err != nil {
			code = failed(err)
		}
	}
	report := os.Getenv(partVariable)
	switch {
	case code != 0:
		return code
	case report != "":
		if err := used.save(report); err != nil {
			return failed(err)
		}
	case whole:
		return used.judge()
	}
	return 0
}

// everything says that no test was left out, so that what was not seen does not happen.
func everything() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "integration tests:", err)
	return 1
}

// prepare makes the clients and puts into the cluster what the operator needs to be there.
func prepare(ctx context.Context, c *rig.Cluster) error {
	suite.cluster = c
	suite.scheme = runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(suite.scheme))
	utilruntime.Must(v1alpha1.AddToScheme(suite.scheme))
	var err error
	suite.config = adminConfig(c)
	if suite.admin, err = client.NewWithWatch(suite.config, client.Options{Scheme: suite.scheme}); err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	if err := installCRDs(ctx); err != nil {
		return err
	}
	if suite.access, err = installAccess(ctx); err != nil {
		return err
	}
	if suite.audit, err = followAudit(ctx, c.AuditLog, suite.access.user()); err != nil {
		return err
	}
	suite.recorder, err = record.Start(ctx, suite.admin)
	return err
}
