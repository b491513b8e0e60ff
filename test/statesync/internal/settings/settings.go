// Package settings reads what a state container is told in its environment. The names are the
// platform's.
package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Settings is what a state container is told.
type Settings struct {
	Endpoint             *url.URL
	Bucket               string
	AccessKey, SecretKey string
	Namespace, Session   string
	StateDir             string
	// Workspace is the folder that holds all others.
	Workspace string
	Interval  time.Duration
	// LargestFile is how many bytes a file may have to be copied.
	LargestFile int64
	// CrashAfter has the sidecar end badly after that time, for tests; 0 for never.
	CrashAfter time.Duration
}

// What holds where nothing is said, as in the platform's image.
const (
	defaultStateDir    = ".claude"
	defaultWorkspace   = "/workspace"
	defaultInterval    = 60
	defaultLargestFile = 1 << 30
)

// Read takes the settings from the environment, and says everything that is wrong with it.
func Read(getenv func(string) string) (Settings, error) {
	var wrong []error
	needed := func(name string) string {
		value := getenv(name)
		if value == "" {
			wrong = append(wrong, fmt.Errorf("%s is not set", name))
		}
		return value
	}
	number := func(name string, otherwise int64) int64 {
		value := getenv(name)
		if value == "" {
			return otherwise
		}
		parsed, err := strconv.ParseInt(value, 10, 64)
		if err != nil || parsed <= 0 {
			wrong = append(wrong, fmt.Errorf("%s is %q: set it to a positive number", name, value))
		}
		return parsed
	}
	or := func(value, otherwise string) string {
		if value == "" {
			return otherwise
		}
		return value
	}
	s := Settings{
		Bucket: needed("S3_BUCKET"), AccessKey: needed("AWS_ACCESS_KEY_ID"), SecretKey: needed("AWS_SECRET_ACCESS_KEY"),
		Namespace: or(getenv("NAMESPACE"), "default"), Session: or(getenv("SESSION_NAME"), "unknown"),
		StateDir: or(getenv("RUNNER_STATE_DIR"), defaultStateDir), Workspace: or(getenv("WORKSPACE_PATH"), defaultWorkspace),
		Interval:    time.Duration(number("SYNC_INTERVAL", defaultInterval)) * time.Second,
		LargestFile: number("MAX_SYNC_SIZE", defaultLargestFile),
	}
	if getenv("SYNC_CRASH_AFTER") != "" {
		s.CrashAfter = time.Duration(number("SYNC_CRASH_AFTER", 0)) * time.Second
	}
	endpoint := needed("S3_ENDPOINT")
	parsed, err := url.Parse(endpoint)
	if endpoint != "" && (err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https") {
		wrong = append(wrong, fmt.Errorf("S3_ENDPOINT is %q: set it to the URL of an S3 server", endpoint))
	}
	s.Endpoint = parsed
	return s, errors.Join(wrong...)
}

// Prefix is where in the bucket the session is kept.
func (s Settings) Prefix() string { return s.Namespace + "/" + s.Session + "/" }

// Folders are those of the workspace that are kept: the framework's state, what the runner made and
// what users gave it. Repositories are not among them, they are kept by git.
func (s Settings) Folders() []string { return []string{s.StateDir, "artifacts", "file-uploads"} }
