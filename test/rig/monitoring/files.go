package monitoring

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// configFile is the configuration, under the name that Prometheus has for it.
	configFile = "prometheus.yaml"
	// inPod is where the files of a configuration lie in the pods that prometheus-operator makes.
	inPod = "/etc/prometheus/"
	// podName and shard stand in a configuration for what the pod itself fills in: its name, and
	// which part of the targets is its own.
	podName = "$(POD_NAME)"
	shard   = "$(SHARD)"
)

// follow keeps the files and the program up to date with what prometheus-operator writes, as the
// reloader in its pods does, until the context ends.
func (p *Prometheus) follow(ctx context.Context) error {
	for {
		if err := p.followOnce(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("following the configuration of Prometheus %s: %w", p.kind.Name, err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// followOnce follows until the API server ends a watch, as it does now and then.
func (p *Prometheus) followOnce(ctx context.Context) error {
	in := client.InNamespace(p.kind.Namespace)
	secrets, err := p.client.Watch(ctx, &corev1.SecretList{}, in)
	if err != nil {
		return fmt.Errorf("watching Secrets: %w", err)
	}
	defer secrets.Stop()
	rules, err := p.client.Watch(ctx, &corev1.ConfigMapList{}, in)
	if err != nil {
		return fmt.Errorf("watching ConfigMaps: %w", err)
	}
	defer rules.Stop()
	for {
		open := true
		select {
		case _, open = <-secrets.ResultChan():
		case _, open = <-rules.ResultChan():
		}
		if !open {
			return nil
		}
		changed, err := p.write(ctx)
		if err != nil {
			return err
		}
		if changed {
			if err := p.post(ctx, http.MethodPost, "/-/reload"); err != nil {
				return err
			}
		}
	}
}

// write writes the files of the configuration and tells whether any of them is another than before.
func (p *Prometheus) write(ctx context.Context) (changed bool, err error) {
	wanted, err := p.files(ctx)
	if err != nil {
		return false, err
	}
	for name, content := range wanted {
		path := filepath.Join(p.Files, name)
		if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
			continue
		}
		changed = true
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			return false, fmt.Errorf("writing the configuration of Prometheus %s: %w", p.kind.Name, err)
		}
	}
	// A rule file that is gone must not stay loaded.
	err = filepath.WalkDir(p.Files, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.Files, path)
		if _, stays := wanted[name]; err != nil || stays {
			return err
		}
		changed = true
		return os.Remove(path)
	})
	if err != nil {
		return false, fmt.Errorf("removing old files of Prometheus %s: %w", p.kind.Name, err)
	}
	return changed, nil
}

// files gathers the files of the configuration from the objects that prometheus-operator keeps.
func (p *Prometheus) files(ctx context.Context) (map[string][]byte, error) {
	wanted := map[string][]byte{}
	secret := &corev1.Secret{}
	prefix := "prometheus-" + p.kind.Name
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: p.kind.Namespace, Name: prefix}, secret); err != nil {
		return nil, fmt.Errorf("reading the configuration of Prometheus %s: %w", p.kind.Name, err)
	}
	config, err := unzip(secret.Data[configFile+".gz"])
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of Prometheus %s: %w", p.kind.Name, err)
	}
	if wanted[configFile], err = p.adapt(config); err != nil {
		return nil, err
	}
	secrets, rules := &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{secrets, rules} {
		if err := p.client.List(ctx, list, client.InNamespace(p.kind.Namespace)); err != nil {
			return nil, fmt.Errorf("listing the files of Prometheus %s: %w", p.kind.Name, err)
		}
	}
	for _, s := range secrets.Items {
		if strings.HasPrefix(s.Name, prefix+"-tls-assets-") {
			for name, content := range s.Data {
				wanted[filepath.Join("certs", name)] = content
			}
		}
	}
	for _, c := range rules.Items {
		if strings.HasPrefix(c.Name, prefix+"-rulefiles-") {
			for name, content := range c.Data {
				if wanted[filepath.Join("rules", c.Name, name)], err = p.adapt([]byte(content)); err != nil {
					return nil, err
				}
			}
		}
	}
	return wanted, nil
}

// adapt changes a file to where and how fast this Prometheus runs, and nothing else.
func (p *Prometheus) adapt(content []byte) ([]byte, error) {
	content = bytes.ReplaceAll(content, []byte(inPod), []byte(p.Files+"/"))
	content = bytes.ReplaceAll(content, []byte(podName), []byte("prometheus-"+p.kind.Name+"-0"))
	content = bytes.ReplaceAll(content, []byte(shard), []byte("0"))
	if p.pace == 0 {
		return content, nil
	}
	var parsed any
	if err := yaml.Unmarshal(content, &parsed); err != nil {
		return nil, fmt.Errorf("reading a file of Prometheus %s: %w", p.kind.Name, err)
	}
	hasten(parsed, p.pace)
	faster, err := yaml.Marshal(parsed)
	if err != nil {
		return nil, fmt.Errorf("writing a file of Prometheus %s: %w", p.kind.Name, err)
	}
	return faster, nil
}

// hasten sets every interval of scraping and evaluating.
func hasten(value any, pace time.Duration) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			hasten(item, pace)
		}
	case map[string]any:
		for key, item := range value {
			switch key {
			case "scrape_interval", "scrape_timeout", "evaluation_interval", "interval":
				value[key] = pace.String()
			default:
				hasten(item, pace)
			}
		}
	}
}

func unzip(zipped []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	content, err := io.ReadAll(reader)
	return content, errors.Join(err, reader.Close())
}
