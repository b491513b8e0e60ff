//go:build e2e

package monitoring

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/ambient-code/agentic-operator/test/rig/monitoring"
)

// ask evaluates an expression now.
func ask(ctx context.Context, p *monitoring.Prometheus, expression string) (model.Vector, error) {
	value, _, _, err := p.Query(ctx, expression, time.Now())
	if err != nil {
		return nil, fmt.Errorf("evaluating %s: %w", expression, err)
	}
	switch value := value.(type) {
	case model.Vector:
		return value, nil
	case *model.Scalar:
		return model.Vector{{Value: value.Value}}, nil
	}
	return nil, fmt.Errorf("evaluating %s gives a %s", expression, value.Type())
}

// becomes waits until an expression has one value, give or take a little: increase() reckons what
// happened beyond the first and the last scrape.
func becomes(t *testing.T, p *monitoring.Prometheus, expression string, wanted, tolerance float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %v±%v", expression, wanted, tolerance), func(ctx context.Context) (bool, string, error) {
		result, err := ask(ctx, p, expression)
		return err == nil && len(result) == 1 && math.Abs(float64(result[0].Value)-wanted) <= tolerance, result.String(), err
	})
}

// target waits until Prometheus has exactly this many targets of the operator, all of them up, and
// returns one.
func target(t *testing.T, p *monitoring.Prometheus, number int) promv1.ActiveTarget {
	t.Helper()
	var found promv1.ActiveTarget
	eventually(t, fmt.Sprintf("Prometheus %s scrapes the operator's %d pods", p.URL, number), func(ctx context.Context) (bool, string, error) {
		targets, err := p.Targets(ctx)
		if err != nil {
			return false, "", err
		}
		up := 0
		for _, active := range targets.Active {
			if active.Labels["namespace"] == operatorNamespace && active.Health == promv1.HealthGood {
				found = active
				up++
			}
		}
		return up == number && len(targets.Active) == number, fmt.Sprintf("%+v", targets.Active), nil
	})
	return found
}
