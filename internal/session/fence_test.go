package session

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The packages that decide and describe are pure: what they may not do is what would make them
// depend on anything but their arguments.
func TestThePureCoreStaysPure(t *testing.T) {
	for _, folder := range []string{".", "../workload", "../project", "../monitoring"} {
		files := 0
		set := token.NewFileSet()
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			for _, wrong := range impure(file) {
				t.Errorf("%s %s", path, wrong)
			}
			return nil
		})
		if err != nil || files == 0 {
			t.Errorf("looked at %d files of %s: %v", files, folder, err)
		}
	}
}

func impure(file *ast.File) []string {
	var wrong []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return []string{err.Error()}
		}
		for _, forbidden := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "os", "net", "math/rand", "crypto/rand"} {
			if path == forbidden || strings.HasPrefix(path, forbidden+"/") {
				wrong = append(wrong, "imports "+path)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && (x.Name == "time" || x.Name == "metav1") {
				switch s.Sel.Name {
				case "Now", "NowMicro", "Since", "Until", "After", "Tick", "NewTimer", "NewTicker", "Sleep":
					wrong = append(wrong, "uses "+x.Name+"."+s.Sel.Name)
				}
			}
		}
		return true
	})
	return wrong
}

func TestTheFenceSeesWhatItForbids(t *testing.T) {
	for source, want := range map[string]int{
		`package p; import ("fmt"; "time"); var _ = time.Second`:                 0,
		`package p; import "time"; var _ = time.Now()`:                           1,
		`package p; import "time"; var f = time.Now`:                             1,
		`package p; import "os"`:                                                 1,
		`package p; import ("net/http"; "net/url"; _ "net")`:                     3,
		`package p; import "k8s.io/client-go/rest"`:                              1,
		`package p; import "sigs.k8s.io/controller-runtime/pkg/client"`:          1,
		`package p; import "oslo"`:                                               0,
		`package p; import metav1 "example.com/v1"; var _ = metav1.Now()`:        1,
		`package p; import metav1 "example.com/v1"; var _ = metav1.NewTime(nil)`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := impure(file); len(got) != want {
			t.Errorf("%s: found %v, want %d", source, got, want)
		}
	}
}
