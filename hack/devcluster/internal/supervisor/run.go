package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/cluster"
	"github.com/ambient-code/agentic-operator/hack/devcluster/internal/proc"
)

const (
	startTimeout = 3 * time.Minute
	stopTimeout  = time.Minute
)

// keepLogsMarker in a cluster's folder asks the supervisor to leave the logs.
const keepLogsMarker = "keep-logs"

// supervisor is one running cluster.
type supervisor struct {
	options Options
	cluster *cluster.Cluster
	node    cluster.RealNode
	up      *reporter

	stopNodes context.CancelFunc
	waitNodes func()
}

// Run is the supervisor's whole life. node is used when the options ask for a real one.
func Run(options Options, node cluster.RealNode) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	layout, err := cluster.LayoutOf(options.Name)
	if err != nil {
		return err
	}
	release, err := layout.Hold()
	if err != nil {
		return err
	}
	s := &supervisor{options: options, node: node, up: newReporter()}
	s.cluster = &cluster.Cluster{
		Name: options.Name, Layout: layout, BinDir: options.BinDir, Ports: options.Ports,
		Procs: proc.NewGroup(layout.Logs()), Audit: options.Audit, Report: s.up.step,
	}
	if err := s.up.send(message{Held: true}); err != nil {
		return errors.Join(err, layout.Remove(false), release())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := dieWith(options.DieWith, cancel); err != nil {
		return errors.Join(s.up.failed(err), layout.Remove(false), release())
	}
	go s.up.watchLifeline(cancel)
	failure := s.serve(ctx)
	if failure != nil {
		log.Printf("the cluster ends: %v", failure)
	}
	err = s.stop()
	if failure != nil {
		err = errors.Join(s.up.failed(failure), err)
	}
	return errors.Join(err, release())
}

// serve starts the cluster and returns when it is to end. The error tells why it could not start.
func (s *supervisor) serve(ctx context.Context) error {
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.start(starting); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("interrupted while starting: %w", cause)
		}
		return err
	}
	if err := s.up.ready(); err != nil {
		return err
	}
	<-ctx.Done()
	log.Printf("the cluster ends: %v", context.Cause(ctx))
	return nil
}

func (s *supervisor) start(ctx context.Context) error {
	s.cluster.Network = cluster.Loopback()
	if s.options.Node == cluster.NodeReal {
		s.cluster.Network = cluster.Network{}
		network, err := s.node.Prepare(ctx, s.cluster)
		if err != nil {
			return err
		}
		s.cluster.Network = network
	}
	if err := s.writeInfo(false); err != nil {
		return err
	}
	if err := s.cluster.StartControlPlane(ctx); err != nil {
		return err
	}
	if err := s.startNodes(ctx); err != nil {
		return err
	}
	s.cluster.Report("waiting for nodes and the default ServiceAccount")
	if err := s.cluster.WaitUsable(ctx, s.options.Node != cluster.NodeNone); err != nil {
		return err
	}
	return s.writeInfo(true)
}

func (s *supervisor) writeInfo(ready bool) error {
	return s.cluster.Layout.WriteInfo(s.cluster.Info(s.options.Node, os.Getpid(), ready))
}

// stop ends everything in the opposite order and removes the folder.
func (s *supervisor) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var failures []error
	if s.options.Node == cluster.NodeReal {
		failures = append(failures, s.node.Stop(ctx, s.cluster))
	}
	if s.stopNodes != nil {
		s.stopNodes()
		s.waitNodes()
	}
	failures = append(failures, s.cluster.Procs.Stop(ctx))
	if s.options.Node == cluster.NodeReal {
		failures = append(failures, s.node.Clean(ctx, s.cluster))
	}
	_, err := os.Stat(markerFile(s.cluster.Layout))
	failures = append(failures, s.cluster.Layout.Remove(err == nil))
	return errors.Join(failures...)
}

// reporter talks to Up over the two pipes.
type reporter struct {
	out, lifeline *os.File
}

func newReporter() *reporter {
	unix.CloseOnExec(reportFD)
	unix.CloseOnExec(lifelineFD)
	return &reporter{out: os.NewFile(reportFD, "report"), lifeline: os.NewFile(lifelineFD, "lifeline")}
}

// step tells what begins now. Nobody may be listening any more; the log has it as well.
func (r *reporter) step(step string) {
	log.Print(step)
	if err := r.send(message{Step: step}); err != nil {
		log.Printf("nobody hears this: %v", err)
	}
}

func (r *reporter) ready() error         { return r.send(message{Ready: true}) }
func (r *reporter) failed(e error) error { return r.send(message{Error: e.Error()}) }

func (r *reporter) send(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a report: %w", err)
	}
	if _, err := r.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("reporting to the one who waits: %w", err)
	}
	return nil
}

var errAbandoned = errors.New("the command that started the cluster is gone")

// watchLifeline ends the cluster unless Up confirms that it saw it ready.
func (r *reporter) watchLifeline(end context.CancelCauseFunc) {
	line, err := bufio.NewReader(r.lifeline).ReadString('\n')
	if err != nil || line != confirmation {
		end(errAbandoned)
	}
}
