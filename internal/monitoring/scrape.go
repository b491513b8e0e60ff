package monitoring

// The Service's ports by name; which it has says how metrics are served.
const (
	portSecure = "https"
	portPlain  = "http"
)

func (s Serving) portName() string {
	if s.Secure {
		return portSecure
	}
	return portPlain
}

// selector is what only the Service of the metrics is labelled with, of all Services of the
// operator and of runners.
func selector() map[string]any {
	return map[string]any{labelName: "agentic-operator", labelComponent: "metrics"}
}

// service is the Service of the metrics, for installations that came without it. The annotation
// asks OpenShift for a certificate; other clusters do not heed it.
func (w *World) service() map[string]any {
	if w.Serving.Port == 0 {
		return nil
	}
	return map[string]any{
		"metadata": map[string]any{
			"labels":      selector(),
			"annotations": map[string]any{"service.beta.openshift.io/serving-cert-secret-name": "agentic-operator-metrics-cert"},
		},
		"spec": map[string]any{
			"selector": values(w.Installation.PodLabels),
			"ports": []any{map[string]any{
				"name": w.Serving.portName(), "protocol": "TCP",
				"port": int64(w.Serving.Port), "targetPort": int64(w.Serving.Port),
			}},
		},
	}
}

// serviceMonitor has one form that all stacks accept. It names no file of the scraper, which the
// monitoring of user-defined projects refuses, and so the token lies in a Secret. The scheme is
// written in small letters, as older clusters know no other.
func (w *World) serviceMonitor() map[string]any {
	if w.Serving.Port == 0 || w.waits() != "" {
		return nil
	}
	annotations := map[string]any{}
	endpoint := map[string]any{
		"port": w.Serving.portName(), "scheme": w.Serving.portName(), "path": "/metrics",
		"interval": "30s", "scrapeTimeout": "10s",
		"metricRelabelings": sessionNamespace(),
	}
	if w.Serving.Secure {
		annotations[AnnotationRefreshed] = w.TokenRefreshedAt
		endpoint["authorization"] = map[string]any{
			"type":        "Bearer",
			"credentials": map[string]any{"name": TokenSecret, "key": TokenKey},
		}
		tls := map[string]any{"serverName": MetricsService + "." + w.Installation.Namespace + ".svc"}
		if ca := w.Serving.trust().reference(); ca != nil {
			tls["ca"] = ca
			annotations[annotationTrust] = w.TrustVersion
		}
		endpoint["tlsConfig"] = tls
	}
	return map[string]any{
		"metadata": map[string]any{"labels": w.monitorLabels(), "annotations": annotations},
		"spec": map[string]any{
			"endpoints": []any{endpoint},
			"selector":  map[string]any{"matchLabels": selector()},
		},
	}
}

// reference is the object as endpoints name it.
func (t Trust) reference() map[string]any {
	switch {
	case t.ConfigMap != "":
		return map[string]any{"configMap": map[string]any{"name": t.ConfigMap, "key": t.Key}}
	case t.Secret != "":
		return map[string]any{"secret": map[string]any{"name": t.Secret, "key": t.Key}}
	default:
		return nil
	}
}

// sessionNamespace gives every series of ours the namespace of the session under a name that stays:
// a scraper calls the label namespace, exported_namespace where the former names the target's.
func sessionNamespace() []any {
	var rules []any
	for _, label := range []any{"namespace", "exported_namespace"} {
		rules = append(rules, map[string]any{
			"sourceLabels": []any{"__name__", label},
			"regex":        "ambient_.+;(.+)",
			"targetLabel":  "session_namespace",
		})
	}
	return rules
}

// monitorLabels keep the monitoring of user-defined projects away where the platform's own looks.
func (w *World) monitorLabels() map[string]any {
	labels := values(w.Labels)
	if w.Mode() == ModePlatform {
		labels[labelUserMonitoring] = "false"
	}
	return labels
}

// prometheusRule uses only the operator's own metrics, so that on OpenShift the Prometheus that
// scrapes them can evaluate it.
func (w *World) prometheusRule() map[string]any {
	if w.Content.Rules == nil {
		return nil
	}
	labels := w.monitorLabels()
	if w.OpenShift {
		labels[labelRuleScope] = "leaf-prometheus"
	}
	return map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec":     w.Content.Rules,
	}
}
