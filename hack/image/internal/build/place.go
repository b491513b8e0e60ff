package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// refNameAnnotation is how an OCI layout notes the name of an image.
const refNameAnnotation = "org.opencontainers.image.ref.name"

// Base finds a base image: the file of an archive, else a name in a registry. An
// empty name is no base.
func Base(ctx context.Context, base, operatingSystem, arch string) (v1.Image, error) {
	if base == "" {
		return nil, nil
	}
	if _, err := os.Stat(base); err == nil {
		image, err := tarball.ImageFromPath(base, nil)
		if err != nil {
			return nil, fmt.Errorf("reading the base image %s, which must be a docker archive: %w", base, err)
		}
		return image, nil
	}
	ref, err := name.ParseReference(base)
	if err != nil {
		return nil, fmt.Errorf("the base image %q is neither a file nor a name in a registry: %w", base, err)
	}
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: operatingSystem, Architecture: arch}))
	if err != nil {
		return nil, fmt.Errorf("fetching the base image %s: %w", base, err)
	}
	return image, nil
}

// Archive writes the image as a docker archive, which "docker load", "podman
// load" and "ctr images import" read.
func Archive(file string, tag name.Tag, image v1.Image) error {
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		return fmt.Errorf("writing the archive %s: %w", file, err)
	}
	return nil
}

// Built is what a name stands for: an image, or an index of one for each platform.
type Built interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// Layout puts what was built into an OCI layout, which is made if it is not there.
// What had the same name is replaced.
func Layout(folder string, tag name.Tag, built Built) error {
	path, err := layout.FromPath(folder)
	if err != nil {
		if path, err = layout.Write(folder, empty.Index); err != nil {
			return fmt.Errorf("making the OCI layout in %s: %w", folder, err)
		}
	}
	named := layout.WithAnnotations(map[string]string{refNameAnnotation: tag.String()})
	switch built := built.(type) {
	case v1.Image:
		err = path.ReplaceImage(built, match.Name(tag.String()), named)
	case v1.ImageIndex:
		err = path.ReplaceIndex(built, match.Name(tag.String()), named)
	default:
		err = fmt.Errorf("%T is neither an image nor an index", built)
	}
	if err != nil {
		return fmt.Errorf("putting the image into the OCI layout in %s: %w", folder, err)
	}
	return nil
}

// OCIArchive writes what was built as an OCI archive, which holds several platforms
// as well: a tar of the OCI layout. "podman load", "skopeo copy oci-archive:" and
// "ctr images import" read it, "docker load" where its images are containerd's.
func OCIArchive(file string, tag name.Tag, built Built) (err error) {
	folder, err := os.MkdirTemp("", "oci-archive-")
	if err != nil {
		return fmt.Errorf("making a folder for the OCI archive: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := Layout(folder, tag, built); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("making the OCI archive: %w", err)
	}
	if err := errors.Join(pack(out, folder), out.Close()); err != nil {
		return fmt.Errorf("writing the OCI archive %s: %w", file, err)
	}
	return nil
}

// pack writes a folder as a tar, with the same bytes for the same content.
func pack(out io.Writer, folder string) error {
	writer := tar.NewWriter(out)
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		content, err := os.Open(name)
		if err != nil {
			return err
		}
		info, err := content.Stat()
		if err == nil {
			err = writer.WriteHeader(&tar.Header{Name: filepath.ToSlash(relative), Size: info.Size(), Mode: modeFile, Format: tar.FormatUSTAR})
		}
		if err == nil {
			_, err = io.Copy(writer, content)
		}
		return errors.Join(err, content.Close())
	})
	return errors.Join(err, writer.Close())
}

// Push sends what was built to the registry that its name begins with. Registries on
// this machine are spoken to over plain HTTP, others only where insecure is set.
func Push(ctx context.Context, tag string, insecure bool, built Built) error {
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.NewTag(tag, options...)
	if err != nil {
		return fmt.Errorf("reading the name %q to push to: %w", tag, err)
	}
	if err := remote.Push(ref, built, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	return nil
}
