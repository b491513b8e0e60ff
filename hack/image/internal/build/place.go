package build

import (
	"context"
	"fmt"
	"os"

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

// Layout puts the image into an OCI layout, which is made if it is not there. An
// older image of the same name is replaced.
func Layout(folder string, tag name.Tag, image v1.Image) error {
	path, err := layout.FromPath(folder)
	if err != nil {
		if path, err = layout.Write(folder, empty.Index); err != nil {
			return fmt.Errorf("making the OCI layout in %s: %w", folder, err)
		}
	}
	err = path.ReplaceImage(image, match.Name(tag.String()), layout.WithAnnotations(map[string]string{refNameAnnotation: tag.String()}))
	if err != nil {
		return fmt.Errorf("putting the image into the OCI layout in %s: %w", folder, err)
	}
	return nil
}

// Push sends the image to the registry that its name begins with. Registries on
// this machine are spoken to over plain HTTP, others only where insecure is set.
func Push(ctx context.Context, tag string, insecure bool, image v1.Image) error {
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.NewTag(tag, options...)
	if err != nil {
		return fmt.Errorf("reading the name %q to push to: %w", tag, err)
	}
	if err := remote.Write(ref, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	return nil
}
