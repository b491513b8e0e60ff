// Package build makes a container image of a few files, without a container
// engine: one layer with the files and the folders a program may write to, on
// nothing or on a base image.
//
// The same input gives the same bytes: entries are sorted, all times are one
// fixed time, and owners and modes come from the Spec, never from the machine.
// Begin with Image; Spec says what can be asked for.
package build

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is a file of the machine and where it goes in the image.
type File struct {
	Source, Target string
	Executable     bool
}

// Spec says what an image is to be.
type Spec struct {
	Base       v1.Image // nil: nothing
	Files      []File
	Entrypoint []string
	User       string // numeric: Kubernetes cannot see that a name is not root
	WorkingDir string
	Home       string
	Env        map[string]string
	Labels     map[string]string
	OS         string
	Arch       string
	Time       time.Time // of the image and of everything in it
}

// Modes of what is in an image. Everything belongs to user 0 and group 0; the
// folders a program may write to are open to the group, because clusters such as
// OpenShift run containers as a random user of group 0.
const (
	modeProgram = 0o755
	modeFile    = 0o644
	modeFolder  = 0o755
	modeShared  = 0o775
	modeTmp     = 0o1777
)

// workspaceFolder is where a session's volume is mounted. It exists in every
// image, so that the program runs without the volume too.
const workspaceFolder = "/workspace"

// Image makes the image.
func Image(spec Spec) (v1.Image, error) {
	content, err := archive(spec)
	if err != nil {
		return nil, err
	}
	base := spec.Base
	if base == nil {
		base = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	kind, err := base.MediaType()
	if err != nil {
		return nil, fmt.Errorf("reading what kind of image the base is: %w", err)
	}
	layerKind := types.OCILayer // one image must not mix the two kinds
	if kind == types.DockerManifestSchema2 {
		layerKind = types.DockerLayer
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(layerKind))
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}
	image, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: spec.Time}, CreatedBy: "hack/image", Comment: "files of this image"},
	})
	if err != nil {
		return nil, fmt.Errorf("putting the layer on the base: %w", err)
	}
	return configure(image, spec)
}

// configure writes what a runtime needs to know. The environment and the labels
// of a base stay, unless the Spec has others.
func configure(image v1.Image, spec Spec) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the base's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.Created = v1.Time{Time: spec.Time}
	file.OS, file.Architecture = spec.OS, spec.Arch
	file.Config.Entrypoint, file.Config.Cmd = spec.Entrypoint, nil
	file.Config.User, file.Config.WorkingDir = spec.User, spec.WorkingDir
	file.Config.Env = environment(file.Config.Env, spec)
	if file.Config.Labels == nil && len(spec.Labels) > 0 {
		file.Config.Labels = map[string]string{}
	}
	for key, value := range spec.Labels {
		file.Config.Labels[key] = value
	}
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("writing the image's configuration: %w", err)
	}
	return image, nil
}

func environment(base []string, spec Spec) []string {
	values := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": spec.Home}
	for _, entry := range base {
		key, value, _ := strings.Cut(entry, "=")
		values[key] = value
	}
	for key, value := range spec.Env {
		values[key] = value
	}
	entries := make([]string, 0, len(values))
	for key, value := range values {
		entries = append(entries, key+"="+value)
	}
	sort.Strings(entries)
	return entries
}

// archive is the layer as a tar.
func archive(spec Spec) ([]byte, error) {
	entries := map[string]*tar.Header{}
	sources := map[string]string{}
	folder := func(name string, mode int64) {
		name = clean(name)
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if entries[parent] == nil {
				entries[parent] = &tar.Header{Typeflag: tar.TypeDir, Mode: modeFolder}
			}
		}
		if name != "." {
			entries[name] = &tar.Header{Typeflag: tar.TypeDir, Mode: mode}
		}
	}
	folder("/tmp", modeTmp)
	for _, shared := range []string{workspaceFolder, spec.Home, spec.WorkingDir} {
		folder(shared, modeShared)
	}
	for _, file := range spec.Files {
		name := clean(file.Target)
		if _, taken := entries[name]; taken {
			return nil, fmt.Errorf("%s is in the image twice: give each file a place of its own", file.Target)
		}
		if parent := path.Dir(name); entries[parent] == nil {
			folder(parent, modeFolder)
		}
		mode := int64(modeFile)
		if file.Executable {
			mode = modeProgram
		}
		entries[name] = &tar.Header{Typeflag: tar.TypeReg, Mode: mode}
		sources[name] = file.Source
	}
	return write(entries, sources, spec.Time)
}

func write(entries map[string]*tar.Header, sources map[string]string, at time.Time) ([]byte, error) {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	sort.Strings(names) // parents come before what is in them
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, name := range names {
		header := entries[name]
		header.Name, header.ModTime, header.Format = name, at, tar.FormatUSTAR
		var content []byte
		if header.Typeflag == tar.TypeDir {
			header.Name += "/"
		} else {
			var err error
			if content, err = os.ReadFile(sources[name]); err != nil {
				return nil, fmt.Errorf("reading what goes to /%s: %w", name, err)
			}
			header.Size = int64(len(content))
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("writing the entry of /%s: %w", name, err)
		}
		if _, err := writer.Write(content); err != nil {
			return nil, fmt.Errorf("writing /%s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("ending the layer: %w", err)
	}
	return out.Bytes(), nil
}

// clean makes a path of the image one of a tar: from the root, without the slash.
func clean(name string) string {
	if trimmed := strings.TrimPrefix(path.Clean("/"+name), "/"); trimmed != "" {
		return trimmed
	}
	return "."
}
