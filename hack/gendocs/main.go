// Command gendocs writes docs/reference from what the code itself ranges over: the phases, rules,
// facts, conditions, reasons, annotations, metrics and settings are values in slices, and the RBAC
// rules a generated file. The pages can therefore say nothing that the operator does not do.
//
// Run it from the root of the repository: go run ./hack/gendocs. The pages are in pages.go and
// rights.go, their form in markdown.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// page is one file of the reference.
type page struct {
	file  string
	title string
	// about is the paragraph under the title.
	about string
	body  func() (string, error)
}

func main() {
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := generate(*root); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

// generate writes every page and removes those that are no longer made.
func generate(root string) error {
	folder := filepath.Join(root, "docs", "reference")
	made, err := render(root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the old reference: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder of the reference: %w", err)
	}
	for file, text := range made {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing a page of the reference: %w", err)
		}
	}
	return nil
}

// render makes every page, by file name.
func render(root string) (map[string]string, error) {
	made := map[string]string{}
	for _, p := range append(pages, rights(root)) {
		body, err := p.body()
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", p.file, err)
		}
		made[p.file] = fmt.Sprintf("<!-- Made from the code by hack/gendocs; do not edit. -->\n\n# %s\n\n%s\n\n%s", p.title, p.about, body)
	}
	return made, nil
}
