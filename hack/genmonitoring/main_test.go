package main

import (
	"os"
	"path/filepath"
	"testing"
)

const root = "../.."

func TestWhatIsWrittenOutIsUpToDate(t *testing.T) {
	made, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range made {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not up to date; run make generate", path)
		}
	}
}

func TestAPageWithoutMarksIsRefused(t *testing.T) {
	if _, err := between("prose", "alerts", "x"); err == nil {
		t.Error("where nothing could be put nothing was said")
	}
}
