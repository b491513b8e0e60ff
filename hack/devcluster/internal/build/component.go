package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Component is one program of the cluster.
type Component struct {
	// Name is that of the built file.
	Name string
	// Module is the folder below components/ whose go.mod pins it.
	Module string
	// Package is the main package: an import path, or ./… for one that lies in the folder itself.
	Package string
	// LDFlags is added to -s -w.
	LDFlags string
	// Tags are build tags, comma separated.
	Tags string
}

const hashLength = 16

// fingerprint names a build: two components with the same one are the same file.
func (c Component) fingerprint(source, goVersion string) (string, error) {
	sum := sha256.New()
	if _, err := fmt.Fprintln(sum, goVersion, c.Name, c.Package, c.LDFlags, c.Tags); err != nil {
		return "", fmt.Errorf("hashing %s: %w", c.Name, err)
	}
	root := filepath.Join(source, c.Module)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%s %d\n%s\n", strings.TrimPrefix(path, root), len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the module of %s: %w", c.Name, err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:hashLength], nil
}

func (c Component) arguments(output string) []string {
	args := []string{"build", "-trimpath", "-ldflags=" + strings.TrimSpace("-s -w "+c.LDFlags)}
	if c.Tags != "" {
		args = append(args, "-tags="+c.Tags)
	}
	return append(args, "-o", output, c.Package)
}
