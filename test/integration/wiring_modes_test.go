package integration

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// TestCase59TheLabelChoosesTheStack: the label of the operator's namespace is heeded as it changes.
func TestCase59TheLabelChoosesTheStack(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.namespace(monitoring.MonitoringNamespace)
	rig.brings(monitoring.ServiceMonitors, monitoring.PrometheusRules, monitoring.Prometheuses)
	rig.secure()
	rig.start(nil)
	prometheus := func() error { return rig.mayDiscover("system:serviceaccount:openshift-monitoring:prometheus-k8s") }

	optedOut := func(want string) func(*unstructured.Unstructured) error {
		return func(o *unstructured.Unstructured) error {
			if got := o.GetLabels()["openshift.io/user-monitoring"]; got != want {
				return fmt.Errorf("its label openshift.io/user-monitoring is %q, want %q", got, want)
			}
			return nil
		}
	}
	rig.appears(monitoring.ServiceMonitors, monitorName, optedOut(""))
	if told := rig.says(monitoring.PartUserWorkload, "Disabled"); !strings.Contains(told, "oc -n openshift-monitoring edit configmap cluster-monitoring-config") {
		t.Errorf("the state does not tell how to switch it on: %s", told)
	}
	if prometheus() == nil {
		t.Error("the platform's Prometheus may look into the namespace although nobody asked it to")
	}

	rig.label("openshift.io/cluster-monitoring", "true")
	rig.appears(monitoring.ServiceMonitors, monitorName, optedOut("false"))
	rig.appears(monitoring.PrometheusRules, monitorName, optedOut("false"))
	rig.appears(monitoring.RoleBindings, monitoring.PlatformAccess)
	rig.eventually("the platform's Prometheus may look into the namespace", prometheus)

	rig.label("openshift.io/cluster-monitoring", "")
	rig.appears(monitoring.ServiceMonitors, monitorName, optedOut(""))
	rig.vanishes(monitoring.RoleBindings, monitoring.PlatformAccess)
	rig.vanishes(monitoring.Roles, monitoring.PlatformAccess)

	rig.namespace("openshift-user-workload-monitoring")
	t.Cleanup(func() { rig.removeNamespace("openshift-user-workload-monitoring") })
	notFalse := map[string]any{"matchExpressions": []any{map[string]any{"key": "openshift.io/user-monitoring", "operator": "NotIn", "values": []any{"false"}}}}
	rig.prometheus("openshift-user-workload-monitoring", "user-workload", notFalse, notFalse)
	rig.says(monitoring.PartUserWorkload, "Enabled")
	rig.says(monitoring.PartSelected, "Selected")
	rig.says(monitoring.PartLoaded, "Loaded")
	rig.label("openshift.io/user-monitoring", "false")
	if told := rig.says(monitoring.PartSelected, "NamespaceOptedOut"); !strings.Contains(told, "oc label namespace "+rig.name+" openshift.io/user-monitoring-") {
		t.Errorf("the state does not tell how to take the label off: %s", told)
	}
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained %d times, first: %s", len(lines), lines[0])
	}
}

// TestPlainKubernetes: without OpenShift a Prometheus is looked for that reads the ServiceMonitor,
// and the labels that it wants can be given.
func TestPlainKubernetes(t *testing.T) {
	rig := newWiring(t)
	rig.brings(monitoring.ServiceMonitors, monitoring.Prometheuses)
	rig.start(nil)
	rig.says(monitoring.PartSelected, "NoPrometheus")
	rig.prometheus(rig.name, "kps", map[string]any{}, map[string]any{"matchLabels": map[string]any{"release": "kps"}})
	told := rig.says(monitoring.PartSelected, "LabelsNotSelected")
	if !strings.Contains(told, "set env deployment/agentic-operator MONITORING_LABELS=release=kps") {
		t.Errorf("the state does not tell which label: %s", told)
	}
	rig.appears(monitoring.ConfigMaps, monitoring.DashboardObject)
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(map[string]string{"MONITORING_LABELS": "release=kps"})
	rig.says(monitoring.PartSelected, "Selected")
	rig.says(monitoring.PartScraped, "Awaited")
	rig.scraped(monitoring.ScrapesMissing)
	if told := rig.says(monitoring.PartScraped, "NotScraped"); !strings.Contains(told, "kubectl -n "+rig.name+" port-forward prometheus-kps-0 9090") {
		t.Errorf("the state does not tell where to look: %s", told)
	}
	rig.scraped(monitoring.ScrapesSeen)
	rig.says(monitoring.PartScraped, "Scraped")
	object := rig.appears(monitoring.ServiceMonitors, monitorName)
	if object.GetLabels()["release"] != "kps" {
		t.Errorf("the labels are %v", object.GetLabels())
	}
}

// TestABareCluster has none of the kinds and nothing of OpenShift: nobody is told anything but where
// to look, and nothing fails.
func TestABareCluster(t *testing.T) {
	rig, from := newWiring(t), logged()
	rig.start(nil)
	rig.says(monitoring.PartServiceMonitor, "NotServed")
	rig.rests(2 * time.Second)
	state, err := rig.state()
	if err != nil {
		t.Fatal(err)
	}
	if missing := state.Missing(); len(missing) > 0 {
		t.Errorf("the operator misses %v", missing)
	}
	if lines := complaints(from); len(lines) > 0 {
		t.Errorf("the operator complained: %s", lines)
	}
	if events := rig.wiringEvents(); len(events) > 0 {
		t.Errorf("the Deployment has Events %v", events)
	}
}

// TestTheScrapeToken is made before the ServiceMonitor, renewed after two thirds of its life with a
// change of the ServiceMonitor, and replaced when it was overwritten or its account made anew.
func TestTheScrapeToken(t *testing.T) {
	rig := newWiring(t)
	fake := clocktesting.NewFakeClock(time.Now())
	rig.clock = fake
	rig.secure()
	rig.brings(monitoring.ServiceMonitors)
	rig.start(nil)
	refreshed := func(o *unstructured.Unstructured) string { return o.GetAnnotations()[monitoring.AnnotationRefreshed] }
	unlike := func(was *unstructured.Unstructured) func(*unstructured.Unstructured) error {
		return func(o *unstructured.Unstructured) error {
			if refreshed(o) == "" || refreshed(o) == refreshed(was) {
				return errors.New("it is the old one")
			}
			return nil
		}
	}
	monitor := rig.appears(monitoring.ServiceMonitors, monitorName)
	secret := rig.appears(monitoring.Secrets, monitoring.TokenSecret)
	if refreshed(monitor) != refreshed(secret) || secret.GetCreationTimestamp().After(monitor.GetCreationTimestamp().Time) {
		t.Errorf("the ServiceMonitor of %s is not of the token of %s", refreshed(monitor), refreshed(secret))
	}
	rig.authenticates(secret, true)

	rig.rests(2 * time.Second)
	fake.Step(15 * time.Hour)
	before := rig.rests(2 * time.Second)
	fake.Step(2 * time.Hour)
	secret = rig.appears(monitoring.Secrets, monitoring.TokenSecret, unlike(secret))
	monitor = rig.appears(monitoring.ServiceMonitors, monitorName, unlike(monitor))
	if refreshed(monitor) != refreshed(secret) {
		t.Errorf("the ServiceMonitor says %s, the token %s", refreshed(monitor), refreshed(secret))
	}
	if writes := rig.rests(2*time.Second) - before; writes > 4 {
		t.Errorf("a renewal took %d writes", writes)
	}

	overwritten := []byte(fmt.Sprintf(`{"data":{"token":%q}}`, base64.StdEncoding.EncodeToString([]byte("bogus"))))
	fake.Step(time.Minute)
	if _, err := rig.at(monitoring.Secrets, rig.name).Patch(rig.ctx, monitoring.TokenSecret, types.MergePatchType, overwritten, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	secret = rig.appears(monitoring.Secrets, monitoring.TokenSecret, unlike(secret))
	rig.authenticates(secret, true)

	fake.Step(time.Minute)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rig.name, Name: monitoring.ReaderAccount}}
	rig.delete(account)
	rig.says(monitoring.PartScrapeToken, "NoAccount")
	account.ResourceVersion, account.UID = "", ""
	rig.create(account)
	old := secret
	secret = rig.appears(monitoring.Secrets, monitoring.TokenSecret, unlike(secret))
	rig.authenticates(secret, true)
	rig.authenticates(old, false)
	rig.rests(time.Second)

	// A new leader trusts what it finds.
	if err := rig.stop(); err != nil {
		t.Fatal(err)
	}
	rig.start(nil)
	rig.says(monitoring.PartScrapeToken, "Kept")
	rig.rests(2 * time.Second)
	if now := rig.appears(monitoring.Secrets, monitoring.TokenSecret); refreshed(now) != refreshed(secret) {
		t.Error("a restart made a new token although the old one was good")
	}
	// And the authority of the certificate, when it changes, makes scrapers look again.
	monitor = rig.appears(monitoring.ServiceMonitors, monitorName)
	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rig.name, Name: "openshift-service-ca.crt"}}
	rig.patch(ca, `{"data":{"service-ca.crt":"y"}}`)
	rig.appears(monitoring.ServiceMonitors, monitorName, func(o *unstructured.Unstructured) error {
		if o.GetResourceVersion() == monitor.GetResourceVersion() {
			return errors.New("it is unchanged")
		}
		return nil
	})
}

// TestServingDecidesTheForm: HTTPS or HTTP, and what verifies it, follow how metrics are served.
func TestServingDecidesTheForm(t *testing.T) {
	rig := newWiring(t)
	rig.brings(monitoring.ServiceMonitors)
	rig.start(nil)
	scheme := func(want string, authorized bool) func(*unstructured.Unstructured) error {
		return func(o *unstructured.Unstructured) error {
			endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
			if err != nil {
				return err
			}
			endpoint := endpoints[0].(map[string]any)
			if _, found := endpoint["authorization"]; endpoint["scheme"] != want || endpoint["port"] != want || found != authorized {
				return fmt.Errorf("its endpoint is %v", endpoint)
			}
			return nil
		}
	}
	rig.appears(monitoring.ServiceMonitors, monitorName, scheme("http", false))
	rig.secure()
	rig.changed <- event.GenericEvent{Object: &corev1.Secret{}}
	rig.appears(monitoring.ServiceMonitors, monitorName, scheme("https", true))
	rig.appears(monitoring.Secrets, monitoring.TokenSecret)
	rig.serving.Secure = false
	rig.changed <- event.GenericEvent{Object: &corev1.Secret{}}
	rig.appears(monitoring.ServiceMonitors, monitorName, scheme("http", false))
	rig.vanishes(monitoring.Secrets, monitoring.TokenSecret)
}

// secure has metrics served over HTTPS with OpenShift's authority.
func (w *wiringRig) secure() {
	w.t.Helper()
	w.trust()
	w.serving = monitoring.Serving{Secure: true, Source: "ServiceCA", Port: 8443, HealthPort: 8081, Trust: monitoring.Trust{ConfigMap: "openshift-service-ca.crt", Key: "service-ca.crt"}}
}

// prometheus makes a Prometheus object, which nothing runs, unless there is one of that name.
func (w *wiringRig) prometheus(namespace, name string, namespaces, monitors map[string]any) {
	w.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"serviceMonitorNamespaceSelector": namespaces, "serviceMonitorSelector": monitors,
		"ruleNamespaceSelector": namespaces, "ruleSelector": monitors,
	}}}
	object.SetAPIVersion(monitoring.Prometheuses.APIVersion())
	object.SetKind(monitoring.Prometheuses.Kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	w.eventually("the API server takes a Prometheus", func() error {
		_, err := w.at(monitoring.Prometheuses, namespace).Create(w.ctx, object, metav1.CreateOptions{})
		return client.IgnoreAlreadyExists(err)
	})
}

func (w *wiringRig) removeNamespace(name string) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := suite.admin.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
		w.t.Error(err)
	}
	gone(w.t, "namespace "+name, func() error { return suite.admin.Get(context.Background(), client.ObjectKey{Name: name}, namespace) })
}

// mayDiscover asks whether somebody may find targets in the operator's namespace.
func (w *wiringRig) mayDiscover(user string) error {
	for _, resource := range []string{"services", "endpoints", "pods", "endpointslices"} {
		for _, verb := range []string{"get", "list", "watch"} {
			group := ""
			if resource == "endpointslices" {
				group = "discovery.k8s.io"
			}
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.name, Verb: verb, Group: group, Resource: resource},
			}}
			if err := suite.admin.Create(w.ctx, review); err != nil {
				return err
			}
			if !review.Status.Allowed {
				return fmt.Errorf("%s may not %s %s", user, verb, resource)
			}
		}
	}
	return nil
}

// authenticates waits until the API server takes the token of a Secret for what it is, or does not.
func (w *wiringRig) authenticates(secret *unstructured.Unstructured, want bool) {
	w.t.Helper()
	encoded, _, err := unstructured.NestedString(secret.Object, "data", monitoring.TokenKey)
	if err != nil {
		w.t.Fatal(err)
	}
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually(fmt.Sprintf("the token is good: %t", want), func() error {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(token)}}
		if err := suite.admin.Create(w.ctx, review); err != nil {
			return err
		}
		name := "system:serviceaccount:" + w.name + ":" + monitoring.ReaderAccount
		if good := review.Status.Authenticated && review.Status.User.Username == name; good != want {
			return fmt.Errorf("it is not: %+v", review.Status)
		}
		return nil
	})
}
