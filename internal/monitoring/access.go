package monitoring

// platformRole lets the platform's Prometheus find the target; it has no rights in namespaces that
// do not give it any.
func (w *World) platformRole() map[string]any {
	if w.Mode() != ModePlatform || !w.Served[ServiceMonitors] {
		return nil
	}
	verbs := []any{"get", "list", "watch"}
	return map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"services", "endpoints", "pods"}, "verbs": verbs},
		map[string]any{"apiGroups": []any{"discovery.k8s.io"}, "resources": []any{"endpointslices"}, "verbs": verbs},
	}}
}

func (w *World) platformRoleBinding() map[string]any {
	if w.platformRole() == nil {
		return nil
	}
	return map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": PlatformAccess},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": MonitoringNamespace}},
	}
}

// networkPolicy lets the monitoring in where other policies would keep it out. On OpenShift its
// namespaces have a label; elsewhere nobody knows where a Prometheus runs, so all may ask, and the
// endpoint itself answers only those with a token. The health port stays open to all: probes come
// from the node, which no selector names.
func (w *World) networkPolicy() map[string]any {
	var ingress []any
	if w.Serving.Port != 0 {
		rule := map[string]any{"ports": []any{port(w.Serving.Port)}}
		if w.OpenShift {
			rule["from"] = []any{map[string]any{"namespaceSelector": map[string]any{
				"matchLabels": map[string]any{"network.openshift.io/policy-group": "monitoring"},
			}}}
		}
		ingress = append(ingress, rule)
	}
	if w.Serving.HealthPort != 0 {
		ingress = append(ingress, map[string]any{"ports": []any{port(w.Serving.HealthPort)}})
	}
	if len(ingress) == 0 {
		return nil
	}
	return map[string]any{"spec": map[string]any{
		"podSelector": map[string]any{"matchLabels": values(w.Installation.PodLabels)},
		"policyTypes": []any{"Ingress"},
		"ingress":     ingress,
	}}
}

func port(number int32) map[string]any {
	return map[string]any{"protocol": "TCP", "port": int64(number)}
}
