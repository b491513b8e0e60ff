package runtimes_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambient-code/agentic-operator/internal/runtimes"
)

// longest is what a condition's message may have.
const longest = 32768

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "[]", "null", "{}", "[" + whole + "]", "[" + least + "," + whole + "]", "[1]", `[{"id":"a"},{"id":"a"}]`, `[{"id":"\u0000"}]`,
		`[{"id":"` + strings.Repeat("ä", 500) + `"}]`, `[{"id":"a","container":{"image":"i","resources":{"limits":{"cpu":"1e400"}}}}]`, `[{"id":"a","sandbox":{"workspaceSize":"9999999999999999999E"}}]`} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, text, id string) {
		r := runtimes.Parse(text, defaults)
		if !json.Valid([]byte(text)) && len(r.Known()) > 0 {
			t.Errorf("types are read from what is no JSON: %v", r.Known())
		}
		for _, known := range append(r.Known(), id) {
			runtime, err := r.Lookup(known)
			if err != nil {
				if len(err.Error()) > longest {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
				continue
			}
			usable(t, known, &runtime)
		}
	})
}

// usable checks what the API server and the rest of the operator rely on.
func usable(t *testing.T, id string, r *runtimes.Runtime) {
	t.Helper()
	switch {
	case r.ID != id, r.Image == "", r.Port < 1, !runtimes.StateDir(r.StateDir), r.GracePeriod < 0, r.WorkspaceSize.Sign() <= 0:
		t.Errorf("type %q is %+v", id, r)
	case r.Persistence == runtimes.S3 && r.StateSyncImage == "":
		t.Errorf("type %q has no image for its state", id)
	}
	for name, request := range r.Resources.Requests {
		limit, limited := r.Resources.Limits[name]
		if request.Sign() <= 0 || limited && request.Cmp(limit) > 0 {
			t.Errorf("type %q requests %s %s of %s", id, request.String(), name, limit.String())
		}
	}
	for _, list := range []corev1.ResourceList{r.Resources.Requests, r.Resources.Limits} {
		if list.Cpu().IsZero() || list.Memory().IsZero() {
			t.Errorf("type %q has no bound: %v", id, r.Resources)
		}
	}
}

func FuzzStateDir(f *testing.F) {
	for _, s := range []string{"", ".", "..", ".claude", "/", "a/../b", "a//b", "./a", "a/", "vertex", "a:b", "..a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, dir string) {
		if runtimes.StateDir(dir) && (dir == "" || strings.HasPrefix(dir, "/") || slices.Contains(strings.Split(dir, "/"), "..") || strings.Contains(dir, ":")) {
			t.Errorf("%q passes for a state folder", dir)
		}
	})
}
