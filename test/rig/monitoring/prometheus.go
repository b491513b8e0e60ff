package monitoring

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig"
)

// Kind is a Prometheus as clusters have it.
type Kind struct {
	// Namespace and Name are those of the Prometheus object.
	Namespace, Name string
	account         string
	manifest        string
}

var (
	//go:embed user-workload.yaml
	userWorkload string
	//go:embed platform.yaml
	platform string
	//go:embed plain.yaml
	plain string
)

// The two that OpenShift has, for users' projects and for the namespaces of the platform, and one of
// a cluster that is not OpenShift.
var (
	UserWorkload = Kind{"openshift-user-workload-monitoring", "user-workload", "prometheus-user-workload", userWorkload}
	Platform     = Kind{"openshift-monitoring", "k8s", "prometheus-k8s", platform}
	Plain        = Kind{"monitoring", "main", "prometheus-main", plain}
)

// Prometheus is a Prometheus that runs beside the cluster.
type Prometheus struct {
	*rig.Program
	promv1.API
	// URL is where its page and its API are.
	URL string
	// Files is where the files of its configuration lie.
	Files string
	// HasPage says whether it can draw its page.
	HasPage bool

	kind   Kind
	pace   time.Duration
	client client.WithWatch
	cancel context.CancelFunc
	synced chan error // what following the configuration came to, once it has ended
}

// soon is enough for a program to start and for prometheus-operator to write a configuration.
const soon = 2 * time.Minute

// Run makes a Prometheus object of a kind and runs what prometheus-operator makes of it. A pace
// replaces how often it scrapes and evaluates rules; zero keeps what the objects say.
func (s *Stack) Run(ctx context.Context, kind Kind, pace time.Duration) (*Prometheus, error) {
	page, _, err := Page(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, kind.Name)
	p := &Prometheus{Files: filepath.Join(dir, "files"), kind: kind, pace: pace, client: s.cluster.Client, synced: make(chan error, 1)}
	if err := os.MkdirAll(p.Files, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of Prometheus: %w", err)
	}
	if err := s.describe(ctx, kind, dir); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, soon, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.operator.Ended():
			return false, errors.New("it has ended")
		default:
		}
		_, err := p.write(ctx)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for prometheus-operator to write the configuration of Prometheus %s (its log is %s): %w", kind.Name, s.operator.Log, err)
	}
	if err := p.start(ctx, s.bin, dir, page); err != nil {
		return nil, err
	}
	s.running = append(s.running, p)
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	go func() { p.synced <- p.follow(following) }()
	return p, nil
}

// describe applies the manifest of a kind and writes its token to a file.
func (s *Stack) describe(ctx context.Context, kind Kind, dir string) error {
	parsed, err := template.New(kind.Name).Option("missingkey=error").Parse(kind.manifest)
	if err != nil {
		return fmt.Errorf("reading the manifest of Prometheus %s: %w", kind.Name, err)
	}
	var manifest bytes.Buffer
	token := filepath.Join(dir, "token")
	err = parsed.Execute(&manifest, map[string]string{"Server": s.cluster.Config.Host, "Token": token, "CA": filepath.Join(s.dir, "apiserver-ca-file")})
	if err != nil {
		return fmt.Errorf("filling in the manifest of Prometheus %s: %w", kind.Name, err)
	}
	file := filepath.Join(dir, "manifest.yaml")
	if err := os.WriteFile(file, manifest.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the manifest of Prometheus %s: %w", kind.Name, err)
	}
	if _, err := s.cluster.RunKubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
		return fmt.Errorf("describing Prometheus %s: %w", kind.Name, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kind.Namespace, Name: kind.account}}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	if err := s.cluster.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of Prometheus %s: %w", kind.Name, err)
	}
	if err := os.WriteFile(token, []byte(request.Status.Token), 0o600); err != nil {
		return fmt.Errorf("writing the token of Prometheus %s: %w", kind.Name, err)
	}
	return nil
}

// start starts the program and waits until it answers.
func (p *Prometheus) start(ctx context.Context, bin, dir, page string) error {
	addresses, err := rig.FreeAddresses(1)
	if err != nil {
		return err
	}
	p.URL = "http://" + addresses[0]
	command := exec.Command(filepath.Join(bin, "prometheus"),
		"--config.file="+filepath.Join(p.Files, configFile),
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addresses[0],
		"--web.enable-lifecycle")
	// Where it looks for its page. Without one it works all the same, but draws nothing.
	if p.HasPage = HasPage(page); p.HasPage {
		command.Dir = page
	}
	if p.Program, err = rig.Start("Prometheus "+p.kind.Name, filepath.Join(dir, "prometheus.log"), command); err != nil {
		return err
	}
	connection, err := api.NewClient(api.Config{Address: p.URL})
	if err != nil {
		return fmt.Errorf("connecting to Prometheus %s: %w", p.kind.Name, err)
	}
	p.API = promv1.NewAPI(connection)
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, soon, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.Ended():
			return false, errors.New("it has ended")
		default:
		}
		return p.post(ctx, http.MethodGet, "/-/ready") == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for Prometheus %s (its log is %s): %w", p.kind.Name, p.Log, err)
	}
	return nil
}

func (p *Prometheus) post(ctx context.Context, method, path string) (err error) {
	request, err := http.NewRequestWithContext(ctx, method, p.URL+path, nil)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("Prometheus answers %s to %s: see its log %s", answer.Status, path, p.Log)
	}
	return nil
}

// Stop ends it, and fails where it could not keep up with its configuration.
func (p *Prometheus) Stop() error {
	p.cancel()
	return errors.Join(<-p.synced, p.Program.Stop())
}
