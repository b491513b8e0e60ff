package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CacheVariable names the environment variable that says where built programs are kept.
const CacheVariable = "DEVCLUSTER_CACHE"

// Builder builds components into the cache.
type Builder struct {
	// Source is the folder components/.
	Source string
	// Cache is the folder of the built programs.
	Cache string

	goVersion string
}

// New makes a Builder for the folder components/ and the user's cache.
func New(ctx context.Context) (*Builder, error) {
	source, err := findSource()
	if err != nil {
		return nil, err
	}
	cache := os.Getenv(CacheVariable)
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no folder for built programs (%w): set %s to one", err, CacheVariable)
		}
		cache = filepath.Join(base, "agentic-operator", "devcluster")
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return nil, fmt.Errorf("finding the cache folder: %w", err)
	}
	version, err := goVersion(ctx, source)
	if err != nil {
		return nil, err
	}
	return &Builder{Source: source, Cache: cache, goVersion: version}, nil
}

// product is a component and the file that its build makes.
type product struct {
	Component
	file string
}

// plan names the file of every component and the folder that will show them all together.
func (b *Builder) plan(components []Component) (products []product, binDir string, err error) {
	all := sha256.New()
	for _, component := range components {
		print, err := component.fingerprint(b.Source, b.goVersion)
		if err != nil {
			return nil, "", err
		}
		file := filepath.Join(b.Cache, "built", print, component.Name)
		products = append(products, product{Component: component, file: file})
		if _, err := fmt.Fprintln(all, component.Name, print); err != nil {
			return nil, "", fmt.Errorf("hashing %s: %w", component.Name, err)
		}
	}
	set := hex.EncodeToString(all.Sum(nil))[:hashLength]
	return products, filepath.Join(b.Cache, set, "bin"), nil
}

// Missing lists the components that a Build would have to build.
func (b *Builder) Missing(components []Component) ([]Component, error) {
	products, _, err := b.plan(components)
	if err != nil {
		return nil, err
	}
	var missing []Component
	for _, p := range missingOf(products) {
		missing = append(missing, p.Component)
	}
	return missing, nil
}

func missingOf(products []product) []product {
	var missing []product
	for _, p := range products {
		if _, err := os.Stat(p.file); err != nil {
			missing = append(missing, p)
		}
	}
	return missing
}

// Build builds what the cache lacks and returns a folder that holds all components by name.
func (b *Builder) Build(ctx context.Context, components []Component, progress *Progress) (string, error) {
	products, binDir, err := b.plan(components)
	if err != nil {
		return "", err
	}
	if len(missingOf(products)) > 0 {
		if err := b.buildMissing(ctx, products, progress); err != nil {
			return "", err
		}
	}
	return binDir, link(products, binDir)
}

func (b *Builder) buildMissing(ctx context.Context, products []product, progress *Progress) (err error) {
	if err := os.MkdirAll(b.Cache, 0o700); err != nil {
		return fmt.Errorf("making the cache folder (set %s to one that can be written): %w", CacheVariable, err)
	}
	unlock, err := lock(ctx, filepath.Join(b.Cache, "build.lock"), progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	missing := missingOf(products) // again: whoever held the lock may have built them
	if len(missing) == 0 {
		return nil
	}
	if err := checkSpace(b.Cache); err != nil {
		return err
	}
	for i, p := range missing {
		done := progress.begin(p.Name, i+1, len(missing))
		err := b.compile(ctx, p)
		done(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// compile builds one program beside its place and then moves it there.
func (b *Builder) compile(ctx context.Context, p product) error {
	dir := filepath.Dir(p.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unfinished := p.file + ".unfinished"
	cmd := exec.CommandContext(ctx, "go", p.arguments(unfinished)...)
	cmd.Dir = filepath.Join(b.Source, p.Module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("building %s was interrupted: %w", p.Name, ctx.Err())
		}
		return fmt.Errorf("building %s failed (%w); the end of what the compiler said:\n%s", p.Name, err, tail(string(output)))
	}
	if err := os.Rename(unfinished, p.file); err != nil {
		return fmt.Errorf("putting %s into the cache: %w", p.Name, err)
	}
	return nil
}

// link shows the products under their names in one folder.
func link(products []product, binDir string) error {
	if err := os.MkdirAll(binDir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the programs: %w", err)
	}
	for _, p := range products {
		name := filepath.Join(binDir, p.Name)
		if target, err := os.Readlink(name); err == nil && target == p.file {
			continue
		}
		fresh := fmt.Sprintf("%s.%d", name, os.Getpid())
		if err := errors.Join(os.Symlink(p.file, fresh), os.Rename(fresh, name)); err != nil {
			return fmt.Errorf("linking %s: %w", p.Name, err)
		}
	}
	return nil
}

func tail(output string) string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
