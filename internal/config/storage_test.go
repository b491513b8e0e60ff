package config_test

import (
	"strings"
	"testing"

	"github.com/ambient-code/agentic-operator/internal/config"
)

func load(env map[string]string) (*config.Config, error) {
	return config.Load(nil, func(name string) string { return env[name] })
}

func TestTheStorageOfWorkspaces(t *testing.T) {
	c, err := load(nil)
	if err != nil || c.S3Endpoint != "https://s3.amazonaws.com" || c.S3Bucket != "ambient-sessions" || c.StateSyncImage == "" {
		t.Errorf("by default: %q, %q, %q, %v", c.S3Endpoint, c.S3Bucket, c.StateSyncImage, err)
	}
	c, err = load(map[string]string{"S3_ENDPOINT": "http://minio.ambient-code.svc:9000", "S3_BUCKET": "b", "STATE_SYNC_IMAGE": "registry.example/sync:1"})
	if err != nil || c.S3Endpoint != "http://minio.ambient-code.svc:9000" || c.S3Bucket != "b" || c.StateSyncImage != "registry.example/sync:1" {
		t.Errorf("as told: %q, %q, %q, %v", c.S3Endpoint, c.S3Bucket, c.StateSyncImage, err)
	}
	for _, wrong := range []string{"minio:9000", "ftp://minio", "http://", "://"} {
		if _, err := load(map[string]string{"S3_ENDPOINT": wrong}); err == nil || !strings.Contains(err.Error(), "S3_ENDPOINT") {
			t.Errorf("S3_ENDPOINT=%s: %v", wrong, err)
		}
	}
}

func TestTheUserOfTheStateContainers(t *testing.T) {
	if c, err := load(nil); err != nil || c.StateSyncUser != nil {
		t.Errorf("by default: %v, %v", c.StateSyncUser, err)
	}
	if c, err := load(map[string]string{"STATE_SYNC_USER": "1001"}); err != nil || c.StateSyncUser == nil || *c.StateSyncUser != 1001 {
		t.Errorf("as told: %v, %v", c.StateSyncUser, err)
	}
	for _, wrong := range []string{"0", "-1", "root"} {
		if _, err := load(map[string]string{"STATE_SYNC_USER": wrong}); err == nil || !strings.Contains(err.Error(), "STATE_SYNC_USER") {
			t.Errorf("STATE_SYNC_USER=%s: %v", wrong, err)
		}
	}
}
