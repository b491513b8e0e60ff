package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

func pack(t *testing.T, entries ...tar.Header) string {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg {
			e.Size = int64(len("content"))
		}
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte("content")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.WriteFile(path, buffer.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnpacksWhatScorecardPacks(t *testing.T) {
	from := pack(t, tar.Header{Name: "manifests", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "manifests/a.yaml", Typeflag: tar.TypeReg, Mode: 0o600})
	to := t.TempDir()
	if err := Tar([]string{"xvzf", from, "-C", to}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(to, "manifests", "a.yaml"))
	if err != nil || string(content) != "content" {
		t.Errorf("the file has %q, %v", content, err)
	}
}

func TestRefusesWhatIsNoBundle(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "to")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]tar.Header{
		"a file outside": {Name: "../escaped", Typeflag: tar.TypeReg, Mode: 0o600},
		"a link":         {Name: "link", Linkname: "/etc", Typeflag: tar.TypeSymlink},
	} {
		if err := Unpack(pack(t, e), outside); err == nil {
			t.Errorf("%s is unpacked", name)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(outside), "escaped")); err == nil {
		t.Error("a file was written outside the folder")
	}
	if err := Tar([]string{"cf", "x"}); err == nil {
		t.Error("another call of tar is accepted")
	}
}
