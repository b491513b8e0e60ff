// Command image builds a container image from programs that are built already,
// without a container engine:
//
//	image --binary bin/operator:/operator --license LICENSE --user 1001 \
//	      --tag localhost/ambient/agentic-operator:dev --output operator.tar
//
// It prints the name of the image with its digest. The same files and flags give
// the same digest. Files begin as user 0, group 0; /tmp, /workspace, the home
// and the working directory can be written to by group 0, whatever the user.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/ambient-code/agentic-operator/hack/image/internal/build"
)

// home is a home directory for programs that want one.
const home = "/home/ambient"

// archWord stands for the architecture in the names of files.
const archWord = "{arch}"

// request is what the flags ask for.
type request struct {
	spec       build.Spec
	base       string
	tag        string
	archive    string
	layout     string
	push       bool
	ociArchive string
	insecure   bool
	entrypoint string
	platforms  []string
}

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	release()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	asked, err := parse(args)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(asked.tag)
	if err != nil {
		return fmt.Errorf("--tag %q is no image name, write it as registry/name:tag: %w", asked.tag, err)
	}
	built, err := asked.build(ctx)
	if err != nil {
		return err
	}
	if err := place(ctx, asked, tag, built); err != nil {
		return err
	}
	digest, err := built.Digest()
	if err != nil {
		return fmt.Errorf("computing the digest: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s@%s\n", asked.tag, digest); err != nil {
		return fmt.Errorf("printing the digest: %w", err)
	}
	return nil
}

// build makes the image, or for several platforms one each and an index of them.
func (r *request) build(ctx context.Context) (build.Built, error) {
	images := make([]v1.Image, 0, len(r.platforms))
	for _, platform := range r.platforms {
		spec := r.spec
		spec.OS, spec.Arch, _ = strings.Cut(platform, "/")
		spec.Files = make([]build.File, len(r.spec.Files))
		for i, file := range r.spec.Files {
			file.Source = strings.ReplaceAll(file.Source, archWord, spec.Arch)
			spec.Files[i] = file
		}
		var err error
		if spec.Base, err = build.Base(ctx, r.base, spec.OS, spec.Arch); err != nil {
			return nil, err
		}
		image, err := build.Image(spec)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", platform, err)
		}
		images = append(images, image)
	}
	if len(images) == 1 {
		return images[0], nil
	}
	return build.Index(images)
}

func place(ctx context.Context, asked request, tag name.Tag, built build.Built) error {
	if image, one := built.(v1.Image); one && asked.archive != "" {
		if err := build.Archive(asked.archive, tag, image); err != nil {
			return err
		}
	}
	if asked.ociArchive != "" {
		if err := build.OCIArchive(asked.ociArchive, tag, built); err != nil {
			return err
		}
	}
	if asked.layout != "" {
		if err := build.Layout(asked.layout, tag, built); err != nil {
			return err
		}
	}
	if asked.push {
		return build.Push(ctx, asked.tag, asked.insecure, built)
	}
	return nil
}

func parse(args []string) (request, error) {
	asked := request{spec: build.Spec{Home: home, Env: map[string]string{}, Labels: map[string]string{}}}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&asked.tag, "tag", "", "name of the image, for example localhost/ambient/agentic-operator:dev")
	flags.StringVar(&asked.archive, "output", "", "write a docker archive to this file")
	flags.StringVar(&asked.ociArchive, "oci-archive", "", "write an OCI archive to this file")
	flags.StringVar(&asked.layout, "oci-layout", "", "put the image into the OCI layout in this folder")
	flags.BoolVar(&asked.push, "push", false, "push the image to the registry its name begins with")
	flags.BoolVar(&asked.insecure, "insecure", false, "push over plain HTTP also to another machine")
	flags.StringVar(&asked.base, "base", "", "base image: a docker archive or a name in a registry; none if empty")
	flags.StringVar(&asked.entrypoint, "entrypoint", "", "command to run, words separated by spaces; the first --binary if empty")
	flags.StringVar(&asked.spec.User, "user", "1001", "numeric user to run as")
	flags.StringVar(&asked.spec.WorkingDir, "workdir", "/", "working directory; made if it is not there")
	flags.Func("platform", "operating system and architecture (repeatable: an image for each under one name); this machine's if there is none", asked.forPlatform)
	flags.Func("binary", "program to put into the image, as FILE or FILE:TARGET (repeatable); "+archWord+" in FILE is the architecture", asked.file(true, "/"))
	flags.Func("file", "other file to put into the image, as FILE:TARGET (repeatable)", asked.file(false, ""))
	flags.Func("license", "licence to put into the image, as FILE or FILE:TARGET (repeatable)", asked.file(false, "/licenses/"))
	flags.Func("label", "label, as KEY=VALUE (repeatable)", pair(asked.spec.Labels))
	flags.Func("env", "environment variable, as KEY=VALUE (repeatable)", pair(asked.spec.Env))
	flags.SetOutput(io.Discard) // the error says it all; only who asks for help gets the list
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return asked, err
	}
	if err != nil {
		return asked, fmt.Errorf("reading the flags (see --help): %w", err)
	}
	if flags.NArg() > 0 {
		return asked, fmt.Errorf("%q is not expected: everything is said with flags, see --help", flags.Arg(0))
	}
	err = asked.complete()
	return asked, err
}

// complete checks the flags together and fills in what follows from them.
func (r *request) complete() error {
	if r.tag == "" {
		return errors.New("the image has no name: give it one with --tag")
	}
	if r.archive == "" && r.ociArchive == "" && r.layout == "" && !r.push {
		return errors.New("the image would be lost: say where it goes with --output, --oci-archive, --oci-layout or --push")
	}
	if len(r.platforms) > 1 && r.archive != "" {
		return errors.New("--output writes a docker archive, which holds one platform: write several with --oci-archive")
	}
	if _, err := strconv.ParseUint(r.spec.User, 10, 32); err != nil {
		return fmt.Errorf("--user %q is not a number: give a number, so that a cluster can see that it is not root", r.spec.User)
	}
	if len(r.platforms) == 0 {
		r.platforms = []string{"linux/" + runtime.GOARCH}
	}
	r.spec.Entrypoint = strings.Fields(r.entrypoint)
	for _, file := range r.spec.Files {
		if file.Executable && len(r.spec.Entrypoint) == 0 {
			r.spec.Entrypoint = []string{file.Target}
		}
	}
	var err error
	r.spec.Time, err = imageTime(os.Getenv("SOURCE_DATE_EPOCH"))
	return err
}

// forPlatform reads a --platform.
func (r *request) forPlatform(value string) error {
	if system, arch, found := strings.Cut(value, "/"); !found || system == "" || arch == "" {
		return errors.New("it is incomplete: write it as linux/amd64")
	}
	if slices.Contains(r.platforms, value) {
		return errors.New("it is there twice")
	}
	r.platforms = append(r.platforms, value)
	return nil
}

// imageTime is the time of everything in the image: the one that builders agree
// on through SOURCE_DATE_EPOCH, else the first second of 1970.
func imageTime(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds: set it to one, or not at all", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// file reads FILE:TARGET. With a folder the target may be left out.
func (r *request) file(executable bool, folder string) func(string) error {
	return func(value string) error {
		source, target, found := strings.Cut(value, ":")
		if !found && folder != "" {
			target = path.Join(folder, filepath.Base(source))
		}
		if source == "" || !path.IsAbs(target) {
			return errors.New("write it as FILE:TARGET, with the target's whole path in the image")
		}
		r.spec.Files = append(r.spec.Files, build.File{Source: source, Target: path.Clean(target), Executable: executable})
		return nil
	}
}

func pair(into map[string]string) func(string) error {
	return func(value string) error {
		key, content, found := strings.Cut(value, "=")
		if !found || key == "" {
			return errors.New("write it as KEY=VALUE")
		}
		into[key] = content
		return nil
	}
}
