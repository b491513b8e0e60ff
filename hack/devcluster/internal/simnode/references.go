package simnode

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// lookup finds the data of a namespaced object; ok is false when there is none of that name.
type lookup func(namespace, name string) (keys map[string]bool, ok bool)

// world is what a container needs beside its pod.
type world struct {
	secrets, configMaps lookup
}

// missingEnv tells, in a kubelet's words, what keeps a container from being created; empty when
// nothing does.
func (w world) missingEnv(namespace string, container *corev1.Container) string {
	for _, from := range container.EnvFrom {
		if ref := from.SecretRef; ref != nil {
			if why := missing("secret", namespace, ref.Name, "", ref.Optional, w.secrets); why != "" {
				return why
			}
		}
		if ref := from.ConfigMapRef; ref != nil {
			if why := missing("configmap", namespace, ref.Name, "", ref.Optional, w.configMaps); why != "" {
				return why
			}
		}
	}
	for _, env := range container.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			if why := missing("secret", namespace, ref.Name, ref.Key, ref.Optional, w.secrets); why != "" {
				return why
			}
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			if why := missing("configmap", namespace, ref.Name, ref.Key, ref.Optional, w.configMaps); why != "" {
				return why
			}
		}
	}
	return ""
}

// missingVolume tells, in a kubelet's words, which volume of the pod can't be mounted.
func (w world) missingVolume(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if why := w.missingIn(pod.Namespace, volume); why != "" {
			return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", volume.Name, why)
		}
	}
	return ""
}

func (w world) missingIn(namespace string, volume *corev1.Volume) string {
	if source := volume.Secret; source != nil {
		return w.missingKeys("secret", namespace, source.SecretName, source.Items, source.Optional, w.secrets)
	}
	if source := volume.ConfigMap; source != nil {
		return w.missingKeys("configmap", namespace, source.Name, source.Items, source.Optional, w.configMaps)
	}
	if volume.Projected == nil {
		return ""
	}
	for _, source := range volume.Projected.Sources {
		why := ""
		if s := source.Secret; s != nil {
			why = w.missingKeys("secret", namespace, s.Name, s.Items, s.Optional, w.secrets)
		}
		if s := source.ConfigMap; s != nil {
			why = w.missingKeys("configmap", namespace, s.Name, s.Items, s.Optional, w.configMaps)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

func (w world) missingKeys(kind, namespace, name string, items []corev1.KeyToPath, optional *bool, find lookup) string {
	if why := missing(kind, namespace, name, "", optional, find); why != "" {
		return why
	}
	for _, item := range items {
		if why := missing(kind, namespace, name, item.Key, optional, find); why != "" {
			return fmt.Sprintf("references non-existent %s key: %s", kind, item.Key)
		}
	}
	return ""
}

func missing(kind, namespace, name, key string, optional *bool, find lookup) string {
	if optional != nil && *optional {
		return ""
	}
	keys, ok := find(namespace, name)
	if !ok {
		return fmt.Sprintf("%s %q not found", kind, name)
	}
	if key != "" && !keys[key] {
		return fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kindNames[kind], namespace, name)
	}
	return ""
}

var kindNames = map[string]string{"secret": "Secret", "configmap": "ConfigMap"}

// pullError is a container runtime's message for an image that can't be had; empty when it can.
func pullError(image string) string {
	if !strings.Contains(image, ":nope") && !strings.Contains(image, "invalid") {
		return ""
	}
	return fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", image, image, image)
}
