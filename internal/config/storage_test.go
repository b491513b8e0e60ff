package config_test

import (
	"strings"
	"testing"
)

func TestWhatIsRefusedOfTheStorage(t *testing.T) {
	for _, wrong := range []string{"minio:9000", "ftp://minio", "http://", "://"} {
		if _, err := load("S3_ENDPOINT=" + wrong); err == nil || !strings.Contains(err.Error(), "must be the URL of an S3 server") {
			t.Errorf("S3_ENDPOINT=%s: %v", wrong, err)
		}
	}
	for _, wrong := range []string{"0", "-1", "root"} {
		if _, err := load("STATE_SYNC_USER=" + wrong); err == nil || !strings.Contains(err.Error(), "other than root") {
			t.Errorf("STATE_SYNC_USER=%s: %v", wrong, err)
		}
	}
}
