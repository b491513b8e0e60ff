//go:build e2e

package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

const (
	readerAccount = "agentic-operator-metrics-reader"
	tokenSecret   = "agentic-operator-metrics-token"
)

// toldToBeScraped wants the operator to say that it is scraped, as it sees it.
func toldToBeScraped(t *testing.T) {
	eventually(t, "the operator says that it is scraped", func(ctx context.Context) (bool, string, error) {
		state := &corev1.ConfigMap{}
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "agentic-operator-monitoring"}, state)
		said := state.Data["status.yaml"]
		return strings.Contains(said, "reason: Scraped\n"), said, err
	})
}

// tokenReplaced makes the token of the scrapes void. The operator makes another, and the nudge that
// comes with it brings it into the configuration of Prometheus, which goes on to scrape.
func tokenReplaced(t *testing.T, p *monitoring.Prometheus) {
	old := scrapeToken(t.Context(), t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: readerAccount}}
	if err := cluster.Client.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: readerAccount}}
	if err := cluster.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Prometheus is configured with another token", func(ctx context.Context) (bool, string, error) {
		token := scrapeToken(ctx, t)
		config, err := os.ReadFile(filepath.Join(p.Files, "prometheus.yaml"))
		return !bytes.Equal(token, old) && bytes.Contains(config, token), fmt.Sprintf("the token is another: %v", !bytes.Equal(token, old)), err
	})
	since := time.Now()
	pods := len(operatorPods(t))
	eventually(t, "Prometheus scrapes with the other token", func(ctx context.Context) (bool, string, error) {
		targets, err := p.Targets(ctx)
		good := 0
		for _, active := range targets.Active {
			if active.Health == promv1.HealthGood && active.LastScrape.After(since) {
				good++
			}
		}
		return good == pods, fmt.Sprintf("%+v", targets.Active), err
	})
}

func scrapeToken(ctx context.Context, t *testing.T) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: tokenSecret}, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data["token"]
}
