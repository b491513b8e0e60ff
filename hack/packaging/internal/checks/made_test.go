package checks_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// programs are the images that make builds, by the name of their program.
var programs = []string{"operator", "scorecard"}

// imageTargets has make put programs of ours into images, without building the real ones, and gives
// the folder with the archives.
func imageTargets(t *testing.T, arguments ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, program := range programs {
		for _, arch := range append(labelledArchitectures(t), "") {
			file := filepath.Join(dir, strings.TrimSuffix(program+"-"+arch, "-"))
			if err := os.WriteFile(file, []byte("program of "+arch), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	runMake(t, append(arguments, "BIN="+dir)...)
	return dir
}

func runMake(t *testing.T, arguments ...string) string {
	t.Helper()
	cmd := exec.Command("make", append([]string{"-s", "-C", root}, arguments...)...)
	for _, variable := range os.Environ() {
		// The make that runs the tests must not tell this one what to do.
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}, name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %v: %v: %s", arguments, err, out)
	}
	return string(out)
}

func labelledArchitectures(t *testing.T) (found []string) {
	t.Helper()
	for label, value := range readCSV(t, bundleDir()).Labels {
		if arch, is := strings.CutPrefix(label, "operatorframework.io/arch."); is && value == "supported" {
			found = append(found, arch)
		}
	}
	slices.Sort(found)
	return found
}

// What make puts into the images passes preflight's policy for containers, as far as it needs no
// registry, and no base: that is the Dockerfile's.
func TestCase57TheImagesPassPreflight(t *testing.T) {
	dir := imageTargets(t, "-o", "build", "-o", "scorecard-build", "image", "scorecard-image")
	names := map[string]bool{}
	for _, program := range programs {
		archive := filepath.Join(dir, program+".tar")
		image, err := tarball.ImageFromPath(archive, nil)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
		if err != nil || len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
			t.Fatalf("%s is named %+v, %v", program, manifest, err)
		}
		fitForCatalogs(t, manifest[0].RepoTags[0], image)
		names[labelsOf(t, image)["name"]] = true
	}
	if len(names) != len(programs) {
		t.Errorf("the images say that they are %v", names)
	}
}

// fitForCatalogs are preflight's checks HasUniqueTag, HasProhibitedContainerName, LayerCountAcceptable,
// HasLicense, RunAsNonRoot, HasRequiredLabel and HasNoProhibitedLabels.
func fitForCatalogs(t *testing.T, called string, image v1.Image) {
	t.Helper()
	tag, err := name.NewTag(called, name.StrictValidation)
	if err != nil || tag.TagStr() == "latest" {
		t.Errorf("%s must have a tag of its own: %v", called, err)
	}
	repository := tag.RepositoryStr()
	if forbidden(repository[strings.LastIndex(repository, "/")+1:]) {
		t.Errorf("%s: the name bears a trade mark", called)
	}
	if layers, err := image.Layers(); err != nil || len(layers) == 0 || len(layers) > 40 {
		t.Errorf("%s has %d layers, want 1 to 40: %v", called, len(layers), err)
	}
	if !licensed(t, image) {
		t.Errorf("%s has no file with content in /licenses", called)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	user, _, _ := strings.Cut(file.Config.User, ":")
	if number, err := strconv.Atoi(user); err != nil || number == 0 {
		t.Errorf("%s runs as %q, want the number of a user who is not root", called, user)
	}
	for _, label := range []string{"name", "vendor", "version", "release", "summary", "description", "maintainer"} {
		if value := file.Config.Labels[label]; value == "" || strings.Contains(value, "$") || forbidden(value) {
			t.Errorf("%s: the label %s is %q", called, label, value)
		}
	}
	if version := file.Config.Labels["version"]; version != tag.TagStr() {
		t.Errorf("%s says that it is version %s", called, version)
	}
}

// forbidden is the trade mark, however it is written. Preflight allows it after "for"; we need it nowhere.
func forbidden(text string) bool {
	return regexp.MustCompile(`(?i)red[^a-z0-9]*hat`).MatchString(text)
}

func labelsOf(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file.Config.Labels
}

func licensed(t *testing.T, image v1.Image) bool {
	t.Helper()
	content := mutate.Extract(image)
	defer func() {
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}()
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(header.Name, "licenses/") && header.Size > 0 {
			return true
		}
	}
}

// Who trusts the labels of the bundle finds an image for each architecture under the one name.
func TestCase57ImagesForEveryLabelledArchitecture(t *testing.T) {
	labelled := labelledArchitectures(t)
	builds := runMake(t, "-n", "images-build")
	dir := imageTargets(t, "-o", "images-build", "images")
	if list := "for arch in " + strings.Join(labelled, " ") + ";"; len(labelled) < 2 || !strings.Contains(builds, list) {
		t.Errorf("make images-build does not loop %q:\n%s", list, builds)
	}
	for _, program := range programs {
		index, called := indexOf(t, filepath.Join(dir, program+".oci.tar"))
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, one := range manifest.Manifests {
			image, err := index.Image(one.Digest)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, one.Platform.Architecture)
			if one.Platform.OS != "linux" {
				t.Errorf("%s is for %s", called, one.Platform)
			}
			fitForCatalogs(t, called, image)
			holdsProgramOf(t, image, program, one.Platform.Architecture)
		}
		slices.Sort(found)
		if !slices.Equal(found, labelled) {
			t.Errorf("%s is for %v, labelled are %v", called, found, labelled)
		}
	}
}

func holdsProgramOf(t *testing.T, image v1.Image, program, arch string) {
	t.Helper()
	content := mutate.Extract(image)
	var all bytes.Buffer
	if _, err := io.Copy(&all, content); errors.Join(err, content.Close()) != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"usr/local/bin/" + program, "program of " + arch} {
		if !bytes.Contains(all.Bytes(), []byte(want)) {
			t.Errorf("the image of %s for %s does not hold %q", program, arch, want)
		}
	}
}

// indexOf unpacks an OCI archive with one name in it.
func indexOf(t *testing.T, archive string) (index v1.ImageIndex, called string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpacking %s: %v: %s", archive, err, out)
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%s holds %+v, %v", archive, manifest, err)
	}
	index, err = all.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index, manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]
}
