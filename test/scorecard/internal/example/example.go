// Package example reads the examples that the bundle shows to users in its annotation alm-examples,
// and adapts one to a cluster that does not have all it needs.
package example

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// Bundle is what the tests need of a bundle.
type Bundle struct {
	// Session and Settings are the examples of the two kinds.
	Session  *v1alpha1.AgenticSession
	Settings *v1alpha1.ProjectSettings
	// Deployment is the name of the operator's.
	Deployment string
}

// Read reads the one ClusterServiceVersion of the bundle in a folder.
func Read(dir string) (*Bundle, error) {
	found, err := filepath.Glob(filepath.Join(dir, "manifests", "*.clusterserviceversion.yaml"))
	if err != nil || len(found) != 1 {
		return nil, errors.Join(fmt.Errorf("%s must hold one manifests/*.clusterserviceversion.yaml, it holds %d", dir, len(found)), err)
	}
	content, err := os.ReadFile(found[0])
	if err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion: %w", err)
	}
	var csv struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Install struct {
				Spec struct {
					Deployments []struct {
						Name string `json:"name"`
					} `json:"deployments"`
				} `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &csv); err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion: %w", err)
	}
	deployments := csv.Spec.Install.Spec.Deployments
	if len(deployments) != 1 {
		return nil, fmt.Errorf("the ClusterServiceVersion has %d Deployments, want one", len(deployments))
	}
	b := &Bundle{Deployment: deployments[0].Name}
	return b, b.examples(csv.Metadata.Annotations["alm-examples"])
}

// examples reads the examples as the API server would: a field that the kind does not have is an error.
func (b *Bundle) examples(text string) error {
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return fmt.Errorf("the annotation alm-examples is no list of objects: %w", err)
	}
	for _, one := range all {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(one, &kind); err != nil {
			return fmt.Errorf("reading an example: %w", err)
		}
		var into any
		switch kind.Kind {
		case "AgenticSession":
			b.Session = &v1alpha1.AgenticSession{}
			into = b.Session
		case "ProjectSettings":
			b.Settings = &v1alpha1.ProjectSettings{}
			into = b.Settings
		default:
			return fmt.Errorf("an example is of kind %q, which these tests do not know", kind.Kind)
		}
		strict, err := kjson.UnmarshalStrict(one, into)
		if err := errors.Join(append(strict, err)...); err != nil {
			return fmt.Errorf("the example of kind %s: %w", kind.Kind, err)
		}
	}
	if b.Session == nil || b.Settings == nil {
		return errors.New("alm-examples must hold an AgenticSession and a ProjectSettings")
	}
	return nil
}

// Within takes out of a session the repositories whose host cannot be reached from here, and says
// which. A runner could not reach them either.
func Within(ctx context.Context, s *v1alpha1.AgenticSession) (left []string) {
	var reached []v1alpha1.Repo
	for _, repo := range s.Spec.Repos {
		if reachable(ctx, repo.URL) {
			reached = append(reached, repo)
		} else {
			left = append(left, repo.URL)
		}
	}
	s.Spec.Repos = reached
	return left
}

// Waiting changes the example into a session that goes on until it is stopped: a person talks with
// its agent. The line "hang" is for a runner that obeys scripts.
func Waiting(s *v1alpha1.AgenticSession) {
	s.Spec.StopOnRunFinished, s.Spec.Interactive = false, true
	s.Spec.InitialPrompt = "Do nothing, and wait for the next message.\n\nhang"
}

var ports = map[string]string{"https": "443", "http": "80", "ssh": "22"}

func reachable(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		// git@host:path
		_, rest, _ := strings.Cut(address, "@")
		host, _, _ := strings.Cut(rest, ":")
		u = &url.URL{Scheme: "ssh", Host: host}
	}
	port := u.Port()
	if port == "" {
		port = ports[u.Scheme]
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return false
	}
	return connection.Close() == nil
}
