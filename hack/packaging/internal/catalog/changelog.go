package catalog

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// unreleased is the heading under which changes are noted until they are released.
const unreleased = "## Unreleased"

var released = regexp.MustCompile(`(?m)^## (\S+) \((\d{4}-\d{2}-\d{2})\)$`)

// Changelog is the text of CHANGELOG.md.
type Changelog string

// ReadChangelog reads it.
func ReadChangelog(path string) (Changelog, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the change log: %w", err)
	}
	return Changelog(content), nil
}

// Date is the day of a version; for one that is not released yet that of the newest release.
func (c Changelog) Date(version string) (string, error) {
	all := released.FindAllStringSubmatch(string(c), -1)
	for _, m := range all {
		if m[1] == version {
			return m[2], nil
		}
	}
	if len(all) == 0 {
		return "", fmt.Errorf("the change log names no release; it needs a heading like %q", "## 0.1.0 (2026-01-31)")
	}
	return all[0][2], nil
}

// Pending is what has been noted since the newest release.
func (c Changelog) Pending() string {
	_, rest, found := strings.Cut(string(c), unreleased+"\n")
	if !found {
		return ""
	}
	if next := released.FindStringIndex(rest); next != nil {
		rest = rest[:next[0]]
	}
	return strings.TrimSpace(rest)
}

// Release moves what is pending under a heading of its own. When nothing was noted, the subjects
// of the commits serve.
func (c Changelog) Release(version, day string, commits []string) (Changelog, error) {
	if !strings.Contains(string(c), unreleased+"\n") {
		return "", fmt.Errorf("the change log has no heading %q", unreleased)
	}
	noted := c.Pending()
	if noted == "" {
		for _, subject := range commits {
			noted += "- " + subject + "\n"
		}
		noted = strings.TrimSpace(noted)
	}
	if noted == "" {
		return "", fmt.Errorf("nothing has changed since the last release: there is nothing under %q and no commit", unreleased)
	}
	head, rest, _ := strings.Cut(string(c), unreleased+"\n")
	tail := ""
	if next := released.FindStringIndex(rest); next != nil {
		tail = "\n" + rest[next[0]:]
	}
	section := fmt.Sprintf("%s\n\n## %s (%s)\n\n%s\n", unreleased, version, day, noted)
	return Changelog(head + section + tail), nil
}

// Write writes it.
func (c Changelog) Write(path string) error {
	if err := os.WriteFile(path, []byte(c), 0o644); err != nil {
		return fmt.Errorf("writing the change log: %w", err)
	}
	return nil
}
