package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const tag = "localhost/ambient/try:dev"

// inputs writes the files that images are made of, with a mode and a time that
// must not matter.
func inputs(t *testing.T, mode os.FileMode, at time.Time) (program, other, licence string) {
	t.Helper()
	folder := t.TempDir()
	for file, text := range map[string]string{"program": "\x7fELF", "other": "text", "LICENSE": "Apache"} {
		file = filepath.Join(folder, file)
		if err := errors.Join(os.WriteFile(file, []byte(text), mode), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "program"), filepath.Join(folder, "other"), filepath.Join(folder, "LICENSE")
}

func makeImage(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), args, &out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func TestContent(t *testing.T) {
	program, other, licence := inputs(t, 0o600, time.Now())
	output := filepath.Join(t.TempDir(), "out.tar")
	makeImage(t, "--binary", program+":/usr/local/bin/try", "--binary", program, "--file", other+":/etc/try/config", "--license", licence,
		"--label", "k=v=w", "--env", "A=b", "--workdir", "/srv/work", "--tag", tag, "--output", output, "--platform", "linux/arm64")
	image, err := tarball.ImageFromPath(output, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range entries(t, image) {
		if entry.Uid != 0 || entry.Gid != 0 || entry.ModTime.Unix() != 0 {
			t.Errorf("%s belongs to %d:%d and is from %s", entry.Name, entry.Uid, entry.Gid, entry.ModTime)
		}
		got[entry.Name] = fmt.Sprintf("%o", entry.Mode)
	}
	want := map[string]string{
		"etc": "755", "etc/try": "755", "etc/try/config": "644", "home": "755", "home/ambient": "775",
		"licenses": "755", "licenses/LICENSE": "644", "program": "755", "srv": "755", "srv/work": "775", "tmp": "1777",
		"usr": "755", "usr/local": "755", "usr/local/bin": "755", "usr/local/bin/try": "755", "workspace": "775",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("entries %v\nwant    %v", got, want)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	if config.User != "1001" || config.WorkingDir != "/srv/work" || config.Labels["k"] != "v=w" || file.Architecture != "arm64" ||
		len(config.Entrypoint) != 1 || config.Entrypoint[0] != "/usr/local/bin/try" {
		t.Errorf("configuration %+v", file)
	}
	for _, entry := range []string{"A=b", "HOME=/home/ambient"} {
		if !strings.Contains(strings.Join(config.Env, "\n"), entry) {
			t.Errorf("environment %q lacks %s", config.Env, entry)
		}
	}
}

func entries(t *testing.T, image v1.Image) []*tar.Header {
	t.Helper()
	files := mutate.Extract(image)
	defer func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}()
	var found []*tar.Header
	for reader := tar.NewReader(files); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, header)
	}
}

// TestReproducible builds twice from files that differ in all but content.
func TestReproducible(t *testing.T) {
	var printed []string
	var archives [][]byte
	for i, mode := range []os.FileMode{0o600, 0o755} {
		program, other, licence := inputs(t, mode, time.Unix(int64(i)*1e9, 0))
		output := filepath.Join(t.TempDir(), "out.tar")
		args := [][]string{{"--label", "a=1"}, {"--label", "b=2"}, {"--file", other + ":/b/other"}, {"--file", licence + ":/a/other"}}
		all := []string{"--binary", program + ":/try", "--tag", tag, "--output", output}
		for j := range args { // the order of the flags must not matter either
			all = append(all, args[(j+i)%len(args)]...)
		}
		printed = append(printed, makeImage(t, all...))
		archive, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	if printed[0] != printed[1] || !strings.HasPrefix(printed[0], tag+"@sha256:") {
		t.Errorf("two builds print %q", printed)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds write different archives")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	program, _, _ := inputs(t, 0o600, time.Now())
	if dated := makeImage(t, "--binary", program+":/try", "--tag", tag, "--oci-layout", t.TempDir()); dated == printed[0] {
		t.Error("another time gives the same digest")
	}
}

// TestPlaces puts one image everywhere and reads it back under one digest.
func TestPlaces(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	pushed := strings.TrimPrefix(server.URL, "http://") + "/ambient/try:dev"
	program, other, _ := inputs(t, 0o600, time.Now())
	folder, archive := t.TempDir(), filepath.Join(t.TempDir(), "out.tar")
	line := makeImage(t, "--binary", program, "--tag", pushed, "--push", "--oci-layout", folder, "--output", archive)
	// A second image of the same name takes the place of the first.
	if again := makeImage(t, "--binary", program, "--tag", pushed, "--oci-layout", folder); again != line {
		t.Errorf("printed %s, then %s", line, again)
	}
	ref, err := name.ParseReference(pushed)
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := fetched.Digest()
	if err != nil || line != pushed+"@"+digest.String() {
		t.Errorf("printed %s, the registry holds %s, %v", line, digest, err)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != digest {
		t.Errorf("the layout holds %+v, %v", manifest, err)
	}
	// Each may be the base of another image.
	for _, base := range []string{pushed, archive} {
		output := filepath.Join(t.TempDir(), "out.tar")
		makeImage(t, "--base", base, "--file", other+":/added", "--entrypoint", "/program --flag", "--tag", tag, "--output", output)
		image, err := tarball.ImageFromPath(output, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, entry := range entries(t, image) {
			found[entry.Name] = true
		}
		file, err := image.ConfigFile()
		if err != nil || !found["added"] || !found["program"] || !reflect.DeepEqual(file.Config.Entrypoint, []string{"/program", "--flag"}) {
			t.Errorf("on base %s: %v, %+v, %v", base, found, file, err)
		}
	}
}

// TestSeveralPlatforms makes one name for two architectures, each with its own program, and reads it back
// from everywhere under one digest.
func TestSeveralPlatforms(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	pushed := strings.TrimPrefix(server.URL, "http://") + "/ambient/try:dev"
	folder, from := t.TempDir(), t.TempDir()
	programs := map[string]string{"amd64": "a program", "s390x": "another program"}
	for arch, content := range programs {
		if err := os.WriteFile(filepath.Join(from, "program-"+arch), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--binary", filepath.Join(from, "program-{arch}") + ":/program", "--tag", pushed, "--platform", "linux/amd64", "--platform", "linux/s390x"}
	first, second := filepath.Join(folder, "first.tar"), filepath.Join(folder, "second.tar")
	line := makeImage(t, append(args, "--push", "--oci-layout", filepath.Join(folder, "layout"), "--oci-archive", first)...)
	if again := makeImage(t, append(args, "--oci-layout", filepath.Join(folder, "layout"), "--oci-archive", second)...); again != line {
		t.Errorf("printed %s, then %s", line, again)
	}
	if one, two := contentOf(t, first), contentOf(t, second); one != two {
		t.Error("two builds write different archives")
	}
	unpack(t, first, filepath.Join(folder, "unpacked"))
	ref, err := name.ParseReference(pushed)
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := fetched.Digest()
	if err != nil || line != pushed+"@"+digest.String() {
		t.Errorf("printed %s, the registry holds %s, %v", line, digest, err)
	}
	holdsPlatforms(t, fetched, programs)
	// As a base it gives each platform its own image.
	makeImage(t, "--base", pushed, "--file", filepath.Join(from, "program-{arch}")+":/added", "--entrypoint", "/program", "--tag", tag,
		"--platform", "linux/s390x", "--platform", "linux/amd64", "--oci-layout", filepath.Join(folder, "based"))
	for _, place := range []string{"layout", "unpacked", "based"} {
		all, err := layout.ImageIndexFromPath(filepath.Join(folder, place))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := all.IndexManifest()
		if err != nil || len(manifest.Manifests) != 1 || (manifest.Manifests[0].Digest == digest) != (place != "based") {
			t.Fatalf("the %s holds %+v, %v", place, manifest, err)
		}
		inner, err := all.ImageIndex(manifest.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		holdsPlatforms(t, inner, programs)
	}
}

func holdsPlatforms(t *testing.T, index v1.ImageIndex, programs map[string]string) {
	t.Helper()
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != len(programs) {
		t.Fatalf("the index is %+v, %v", manifest, err)
	}
	for _, one := range manifest.Manifests {
		image, err := index.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		file, err := image.ConfigFile()
		if err != nil || one.Platform == nil || one.Platform.OS != "linux" || file.OS != "linux" || one.Platform.Architecture != file.Architecture {
			t.Fatalf("platform %+v, configuration %+v, %v", one.Platform, file, err)
		}
		for _, entry := range entries(t, image) {
			if entry.Name == "program" && entry.Size != int64(len(programs[file.Architecture])) {
				t.Errorf("the program for %s has %d bytes: it is another's", file.Architecture, entry.Size)
			}
		}
	}
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func unpack(t *testing.T, archive, folder string) {
	t.Helper()
	for reader := tar.NewReader(strings.NewReader(contentOf(t, archive))); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		file := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusals(t *testing.T) {
	program, _, _ := inputs(t, 0o600, time.Now())
	output := filepath.Join(t.TempDir(), "out.tar")
	complete := []string{"--binary", program, "--tag", tag, "--output", output}
	for want, args := range map[string][]string{
		"--tag":                 {"--binary", program, "--output", output},
		"would be lost":         {"--binary", program, "--tag", tag},
		"is not a number":       append(complete, "--user", "nobody"),
		"in the image twice":    append(complete, "--file", program+":/program"),
		"FILE:TARGET":           append(complete, "--file", program),
		"KEY=VALUE":             append(complete, "--label", "novalue"),
		"is not expected":       append(complete, "more"),
		"no such file":          {"--binary", program + "x", "--tag", tag, "--output", output},
		"is incomplete":         append(complete, "--platform", "linux"),
		"there twice":           append(complete, "--platform", "linux/arm64", "--platform", "linux/arm64"),
		"holds one platform":    append(complete, "--platform", "linux/arm64", "--platform", "linux/amd64"),
		"the OCI archive":       {"--binary", program, "--tag", tag, "--oci-archive", "/does/not/exist.tar"},
		"is no image name":      {"--binary", program, "--tag", "Not A Name", "--output", output},
		"neither a file nor":    append(complete, "--base", "Not A Name"),
		"fetching the base":     append(complete, "--base", "127.0.0.1:1/none:none"),
		"the archive /does/not": {"--binary", program, "--tag", tag, "--output", "/does/not/exist.tar"},
	} {
		if err := run(context.Background(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", args, err, want)
		}
	}
}
