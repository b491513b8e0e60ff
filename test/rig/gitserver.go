package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	gitServer     = "git-server"
	gitServerPort = 8080
)

// Commit is a commit as the git server lists it.
type Commit struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	Message string `json:"message"`
}

// GitServer runs a git server with example repositories in a namespace of the real node.
func (c *Cluster) GitServer(ctx context.Context, namespace string, repositories ...string) error {
	yes, no := true, false
	labels := map[string]string{"app": gitServer}
	var args []string
	for _, name := range repositories {
		args = append(args, "--repo", name)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gitServer, Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name:  gitServer,
				Image: GitServerImage.Name,
				Args:  args,
				Ports: []corev1.ContainerPort{{ContainerPort: gitServerPort}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(gitServerPort)},
				}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gitServer},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: gitServerPort}}},
	}
	for _, object := range []client.Object{service, pod} {
		if err := c.Client.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("starting the git server: %w", err)
		}
	}
	if err := c.podReady(ctx, namespace, gitServer); err != nil {
		return fmt.Errorf("waiting for the git server: %w", err)
	}
	return nil
}

// podReady waits until a pod is ready.
func (c *Cluster) podReady(ctx context.Context, namespace, name string) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		found := &corev1.Pod{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found); err != nil {
			return false, err
		}
		return slices.ContainsFunc(found.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}), nil
	})
}

// RepositoryURL is where pods find a repository of the git server.
func RepositoryURL(namespace, name string) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d/%s.git", gitServer, namespace, gitServerPort, name)
}

// Commits lists the newest commits of a repository's main branch.
func (c *Cluster) Commits(ctx context.Context, namespace, name string) ([]Commit, error) {
	clientset, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	answer, err := clientset.CoreV1().Services(namespace).ProxyGet("http", gitServer, fmt.Sprint(gitServerPort), name+"/commits", nil).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the git server for the commits of %s: %w", name, err)
	}
	var commits []Commit
	if err := json.Unmarshal(answer, &commits); err != nil {
		return nil, fmt.Errorf("reading the git server's answer: %w", err)
	}
	return commits, nil
}
