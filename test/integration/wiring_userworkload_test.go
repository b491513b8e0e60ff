package integration

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

const adminsConfig = "# by order of Kim\nprometheusK8s:\n  retention: 24h   # not more\n"

var userWorkloadAsked = map[string]string{"ENABLE_USER_WORKLOAD_MONITORING": "true"}

// clusterConfig is the administrator's ConfigMap as it is; nil when there is none.
func (w *wiringRig) clusterConfig() *corev1.ConfigMap {
	w.t.Helper()
	config := &corev1.ConfigMap{}
	err := suite.admin.Get(w.ctx, client.ObjectKey{Namespace: monitoring.MonitoringNamespace, Name: monitoring.UserWorkloadConfig}, config)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return config
}

// configured makes the ConfigMap.
func (w *wiringRig) configured(text string) *corev1.ConfigMap {
	w.t.Helper()
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: monitoring.MonitoringNamespace, Name: monitoring.UserWorkloadConfig, Annotations: map[string]string{"note": "x"}},
		Data:       map[string]string{"config.yaml": text, "other": "y"},
	}
	w.create(config)
	return config
}

func (w *wiringRig) configIs(text string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("the configuration is %q", text), func() error {
		config := w.clusterConfig()
		if config == nil {
			return fmt.Errorf("there is none")
		}
		if config.Data["config.yaml"] != text || config.Data["other"] != "y" || config.Annotations["note"] != "x" {
			return fmt.Errorf("it is %+v, with annotations %v", config.Data, config.Annotations)
		}
		return nil
	})
}

// TestCase65NothingUnasked: nobody touches the cluster's configuration without being told to.
func TestCase65NothingUnasked(t *testing.T) {
	rig := newWiring(t)
	rig.namespace(monitoring.MonitoringNamespace)
	rig.brings(monitoring.ServiceMonitors)
	was := rig.configured(adminsConfig)
	rig.start(nil)
	if told := rig.says(monitoring.PartUserWorkload, "Disabled"); !strings.HasSuffix(told, "set env deployment/agentic-operator ENABLE_USER_WORKLOAD_MONITORING=true") {
		t.Errorf("the state does not say how the operator is asked: %s", told)
	}
	rig.rests(2 * time.Second)
	if now := rig.clusterConfig(); now.ResourceVersion != was.ResourceVersion {
		t.Errorf("the configuration became %+v", now)
	}
	// Nor is what others switched on taken back.
	rig.patch(was, `{"data":{"config.yaml":"enableUserWorkload: true\n"}}`)
	rig.rests(2 * time.Second)
	rig.configIs("enableUserWorkload: true\n")
	rig.says(monitoring.PartUserWorkload, "Starting")
}

// TestCase65AskedAndTakenBack: one line is added, and taken away when it is no longer asked for, by
// the next operator too.
func TestCase65AskedAndTakenBack(t *testing.T) {
	rig := newWiring(t)
	rig.namespace(monitoring.MonitoringNamespace)
	rig.brings(monitoring.ServiceMonitors)
	was := rig.configured(adminsConfig)
	rig.start(userWorkloadAsked)
	rig.configIs(adminsConfig + "enableUserWorkload: true\n")
	rig.says(monitoring.PartUserWorkload, "Starting")
	rig.rests(time.Second)

	// Who edits the rest keeps what he wrote; who takes the line away is not overruled.
	rig.patch(rig.clusterConfig(), `{"data":{"config.yaml":"new: 1\nenableUserWorkload: true\n"}}`)
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(nil)
	rig.configIs("new: 1\n")
	rig.eventually("only the administrator's annotations are left", func() error {
		if now := rig.clusterConfig(); !maps.Equal(now.Annotations, was.Annotations) {
			return fmt.Errorf("they are %v", now.Annotations)
		}
		return nil
	})
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(userWorkloadAsked)
	rig.configIs("new: 1\nenableUserWorkload: true\n")
	rig.says(monitoring.PartUserWorkload, "Starting")
	rig.patch(rig.clusterConfig(), `{"data":{"config.yaml":"new: 1\n"}}`)
	rig.takenBack(`add the line "enableUserWorkload: true" to its configuration: oc -n openshift-monitoring edit configmap cluster-monitoring-config; to have it off`)
	rig.rests(2 * time.Second)
	rig.configIs("new: 1\n")
	rig.patch(rig.clusterConfig(), `{"data":{"config.yaml":"new: 1\nenableUserWorkload: false\n"}}`)
	rig.takenBack(`replace false by true in the line of "enableUserWorkload" of its configuration: oc -n openshift-monitoring edit configmap cluster-monitoring-config; to have it off`)

	// The next operator knows of it, and what he who took it back sets later is his for good.
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(userWorkloadAsked)
	rig.rests(2 * time.Second)
	rig.takenBack("no longer ask for it: oc -n " + rig.name + " set env deployment/agentic-operator ENABLE_USER_WORKLOAD_MONITORING=false")
	rig.configIs("new: 1\nenableUserWorkload: false\n")
	rig.patch(rig.clusterConfig(), `{"data":{"config.yaml":"enableUserWorkload: true\n"}}`)
	rig.says(monitoring.PartUserWorkload, "Starting")
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(nil)
	rig.eventually("the operator's note is gone", func() error {
		if now := rig.clusterConfig(); !maps.Equal(now.Annotations, was.Annotations) {
			return fmt.Errorf("the annotations are %v", now.Annotations)
		}
		return nil
	})
	rig.configIs("enableUserWorkload: true\n")
}

// takenBack waits until the state says what mends that the operator was overruled, and says the same
// of the ServiceMonitor that nobody reads for it.
func (w *wiringRig) takenBack(remedy string) {
	w.t.Helper()
	w.eventually("the state says "+remedy, func() error {
		state, err := w.state()
		if err != nil {
			return err
		}
		for _, c := range state.Conditions {
			if (c.Part == monitoring.PartUserWorkload || c.Part == monitoring.PartSelected) &&
				(c.Reason != "TakenBack" || !c.Missing || !strings.Contains(c.Message, remedy)) {
				return fmt.Errorf("it says %+v", c)
			}
		}
		return nil
	})
}

// TestCase65UnreadableConfiguration stays as it is, and the state says what to do; once it is mended
// the line is set.
func TestCase65UnreadableConfiguration(t *testing.T) {
	rig := newWiring(t)
	rig.namespace(monitoring.MonitoringNamespace)
	rig.configured("a: [1\n")
	rig.start(userWorkloadAsked)
	if told := rig.says(monitoring.PartUserWorkload, "ConfigurationUnreadable"); !strings.Contains(told, "edit configmap") {
		t.Errorf("the state does not say what to do: %s", told)
	}
	rig.rests(2 * time.Second)
	rig.configIs("a: [1\n")
	rig.patch(rig.clusterConfig(), `{"data":{"config.yaml":"a: [1]\nenableUserWorkload: false\n"}}`)
	rig.configIs("a: [1]\nenableUserWorkload: true\n")
	rig.says(monitoring.PartUserWorkload, "Starting")

	// The off switch takes it back.
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(map[string]string{"ENABLE_USER_WORKLOAD_MONITORING": "true", "MONITORING": "off"})
	rig.configIs("a: [1]\nenableUserWorkload: false\n")
}

// TestCase65ChangeRefused: a configuration that the API server does not let anybody change is told,
// and is not tried again all the time.
func TestCase65ChangeRefused(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.namespace(monitoring.MonitoringNamespace)
	was := rig.configured(adminsConfig)
	rig.patch(was, `{"immutable":true}`)
	rig.start(userWorkloadAsked)
	if told := rig.says(monitoring.PartUserWorkload, "Refused"); !strings.Contains(told, "immutable") || !strings.Contains(told, "oc -n openshift-monitoring edit configmap") {
		t.Errorf("the state does not say what is wrong and what to do: %s", told)
	}
	before := rig.rests(time.Second)
	if now := rig.rests(2 * time.Second); now != before {
		t.Errorf("the operator tried %d times more", now-before)
	}
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}

// TestCase65NoConfiguration: one is made, and removed again with the operator.
func TestCase65NoConfiguration(t *testing.T) {
	rig := newWiring(t)
	rig.namespace(monitoring.MonitoringNamespace)
	rig.start(userWorkloadAsked)
	rig.eventually("the configuration is made", func() error {
		if config := rig.clusterConfig(); config == nil || config.Data["config.yaml"] != "enableUserWorkload: true\n" {
			return fmt.Errorf("it is %+v", config)
		}
		return nil
	})
	rig.says(monitoring.PartUserWorkload, "Starting")
	if err := suite.admin.Delete(context.Background(), rig.deployment); err != nil {
		t.Fatal(err)
	}
	rig.eventually("the configuration is gone", func() error {
		if config := rig.clusterConfig(); config != nil {
			return fmt.Errorf("it is %+v", config)
		}
		return nil
	})
}
