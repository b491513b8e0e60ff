package olm

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/test/rig"
)

const (
	operatorImage = "quay.io/ambient_code/agentic-operator"
	bundleImage   = "quay.io/ambient_code/agentic-operator-bundle"
	catalogImage  = "quay.io/ambient_code/agentic-operator-catalog"
	runnerImage   = "quay.io/ambient_code/vteam_claude_runner:latest"
	buildinfo     = "github.com/ambient-code/agentic-operator/internal/buildinfo"
)

// Version is one version of the operator that can be published.
type Version struct {
	Number string
	// Bundle is the folder of its bundle.
	Bundle string
	// Released is false for the one being worked on.
	Released bool

	repository string // that its catalog is made from; empty for the one that we are in
}

// Versions lists the released versions, oldest first, and then the one being worked on.
func (l *Lifecycle) Versions(ctx context.Context) ([]Version, error) {
	root := l.cluster.Root()
	answer, err := l.run(ctx, Version{}, "versions")
	if err != nil {
		return nil, err
	}
	var versions []Version
	for number := range strings.FieldsSeq(string(answer)) {
		versions = append(versions, Version{Number: number, Bundle: filepath.Join(root, "catalog", "bundles", number), Released: true})
	}
	now, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return nil, fmt.Errorf("reading the version: %w", err)
	}
	return append(versions, Version{Number: strings.TrimSpace(string(now)), Bundle: filepath.Join(root, "bundle")}), nil
}

// Publish publishes the images of a version: the operator, built from the commit that released it,
// and its bundle. It says from what the operator was built.
func (l *Lifecycle) Publish(ctx context.Context, v Version) (builtFrom string, err error) {
	source, builtFrom, err := l.source(ctx, v)
	if err != nil {
		return "", err
	}
	program := filepath.Join(l.dir, "operator-"+v.Number)
	build := exec.CommandContext(ctx, "go", "build", "-C", source, "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X "+buildinfo+".Version="+v.Number, "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building version %s of the operator: %w\n%s", v.Number, err, output)
	}
	err = l.registry.Push(ctx, operatorImage+":"+v.Number, rig.Contents{
		Programs: map[string]string{"/usr/local/bin/operator": program},
	})
	return builtFrom, errors.Join(err, l.publishBundle(ctx, v))
}

// PublishRunner publishes the reference runner under the name of the platform's.
func (l *Lifecycle) PublishRunner(ctx context.Context) error {
	program, err := l.cluster.Build(ctx, "test/runner", ".", "reference-runner")
	if err != nil {
		return err
	}
	return l.registry.Push(ctx, runnerImage, rig.Contents{Programs: map[string]string{"/usr/local/bin/reference-runner": program}})
}

// publishBundle publishes the image of a bundle, with the labels that its metadata repeats.
func (l *Lifecycle) publishBundle(ctx context.Context, v Version) error {
	has := rig.Contents{Files: map[string]string{}}
	err := filepath.WalkDir(v.Bundle, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(v.Bundle, path)
		has.Files["/"+filepath.ToSlash(inside)] = path
		return err
	})
	if err != nil {
		return fmt.Errorf("listing the bundle of version %s: %w", v.Number, err)
	}
	content, err := os.ReadFile(filepath.Join(v.Bundle, "metadata", "annotations.yaml"))
	if err != nil {
		return fmt.Errorf("reading the bundle of version %s: %w", v.Number, err)
	}
	metadata := struct {
		Annotations map[string]string `json:"annotations"`
	}{}
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		return fmt.Errorf("reading the annotations of the bundle of version %s: %w", v.Number, err)
	}
	has.Labels = metadata.Annotations
	return l.registry.Push(ctx, bundleImage+":v"+v.Number, has)
}

// PublishCatalog publishes the catalog as it was, or will be, when that version is the newest, and
// returns the name of its image.
func (l *Lifecycle) PublishCatalog(ctx context.Context, newest Version) (image string, err error) {
	args := []string{"catalog", "--opm", l.cluster.Tool("opm"), "--last", newest.Number}
	if !newest.Released {
		args = append(args, "--next")
	}
	content, err := l.run(ctx, newest, args...)
	if err != nil {
		return "", err
	}
	index := filepath.Join(l.dir, "index-"+newest.Number+".yaml")
	if err := os.WriteFile(index, content, 0o600); err != nil {
		return "", fmt.Errorf("writing the catalog: %w", err)
	}
	image = catalogImage + ":until-" + newest.Number
	return image, l.registry.Push(ctx, image, rig.Contents{
		Base:       opmImage,
		Files:      map[string]string{"/configs/agentic-operator/index.yaml": index},
		Entrypoint: []string{"/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-enforce-integrity=false"},
		Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
	})
}

// source is a folder with the code of a version: what its commit holds, or, where the history does
// not reach back so far, today's.
func (l *Lifecycle) source(ctx context.Context, v Version) (dir, builtFrom string, err error) {
	root := l.cluster.Root()
	if !v.Released {
		return root, "the working directory", nil
	}
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	}
	added, err := git("log", "-1", "--diff-filter=A", "--format=%H", "--", "catalog/bundles/"+v.Number+"/metadata/annotations.yaml")
	commit := strings.TrimSpace(string(added))
	if err != nil || commit == "" {
		return root, "the working directory, since no history tells the commit of its release", nil
	}
	archive, err := git("archive", commit)
	if err != nil {
		return "", "", fmt.Errorf("reading the code of version %s: %w", v.Number, err)
	}
	dir = filepath.Join(l.dir, "source-"+v.Number)
	return dir, "commit " + commit[:12], unpack(archive, dir)
}

func unpack(archive []byte, dir string) error {
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking into %s: %w", dir, err)
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			continue
		}
		path := filepath.Join(dir, header.Name)
		content, err := io.ReadAll(files)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600))
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", path, err)
		}
	}
}
