package policy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

func TestAdmits(t *testing.T) {
	container := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443}}}
	home := Caller{Namespace: "home", NamespaceLabels: map[string]string{"is": "home"}, PodLabels: map[string]string{"app": "a"}}
	away := Caller{Namespace: "away", NamespaceLabels: map[string]string{"is": "away"}, PodLabels: map[string]string{"app": "b"}}
	for name, c := range map[string]struct {
		ingress    string
		home, away bool
	}{
		"nothing":              {`[]`, false, false},
		"everything":           {`[{}]`, true, true},
		"the port":             {`[{ports: [{port: 8443}]}]`, true, true},
		"the port by its name": {`[{ports: [{port: metrics}]}]`, true, true},
		"a range":              {`[{ports: [{port: 8000, endPort: 9000}]}]`, true, true},
		"every port":           {`[{ports: [{protocol: TCP}]}]`, true, true},
		"another port":         {`[{ports: [{port: 8444}]}]`, false, false},
		"another name":         {`[{ports: [{port: health}]}]`, false, false},
		"another range":        {`[{ports: [{port: 8000, endPort: 8442}]}]`, false, false},
		"another protocol":     {`[{ports: [{port: 8443, protocol: UDP}]}]`, false, false},
		"the second rule":      {`[{ports: [{port: 1}]}, {ports: [{port: 8443}]}]`, true, true},
		"a namespace":          {`[{from: [{namespaceSelector: {matchLabels: {is: away}}}]}]`, false, true},
		"all namespaces":       {`[{from: [{namespaceSelector: {}}]}]`, true, true},
		"pods of its own":      {`[{from: [{podSelector: {}}]}]`, true, false},
		"pods with a label":    {`[{from: [{podSelector: {matchLabels: {app: b}}}]}]`, false, false},
		"pods of a namespace":  {`[{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: b}}}]}]`, false, true},
		"the second peer":      {`[{from: [{podSelector: {}}, {namespaceSelector: {matchLabels: {is: away}}}]}]`, true, true},
		"addresses":            {`[{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]`, false, false},
	} {
		policy := &networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte("metadata: {namespace: home}\nspec: {ingress: "+c.ingress+"}"), policy); err != nil {
			t.Fatal(err)
		}
		for from, want := range map[*Caller]bool{&home: c.home, &away: c.away} {
			if got, err := Admits(policy, *from, container, 8443); got != want || err != nil {
				t.Errorf("%s: %s is let in: %t, %v", name, from.Namespace, got, err)
			}
		}
	}
}

func TestGuards(t *testing.T) {
	for text, want := range map[string]bool{
		`{podSelector: {}, policyTypes: [Ingress]}`:                            true,
		`{podSelector: {matchLabels: {app: a}}, policyTypes: [Ingress]}`:       true,
		`{podSelector: {matchLabels: {app: b}}, policyTypes: [Ingress]}`:       false,
		`{podSelector: {matchLabels: {app: a}}, policyTypes: [Egress]}`:        false,
		`{podSelector: {matchLabels: {app: a, b: b}}, policyTypes: [Ingress]}`: false,
	} {
		policy := &networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte(text), &policy.Spec); err != nil {
			t.Fatal(err)
		}
		if got, err := Guards(policy, map[string]string{"app": "a"}); got != want || err != nil {
			t.Errorf("%s guards the pod: %t, %v", text, got, err)
		}
	}
}
