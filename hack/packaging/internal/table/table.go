// Package table shows what the bundle has: one row for each feature that well-packaged operators
// differ in, with the value that is in the repository's files, and one for each check with its
// result. Nothing in it is written by hand but the names of the features and where to look.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// none is the value of a feature that is not there.
const none = "none"

// Row is one line of a section.
type Row struct{ Name, Value string }

// Section is a group of rows.
type Section struct {
	Title string
	Rows  []Row
}

// Features reads the features from the repository in a folder.
func Features(root string) ([]Section, error) {
	f, err := read(root)
	if err != nil {
		return nil, err
	}
	outside, err := f.surroundings()
	if err != nil {
		return nil, err
	}
	return []Section{
		{"ClusterServiceVersion", append(f.shown(), f.installed()...)},
		{"Annotations, labels, properties", f.labelled()},
		{"Objects, catalog, tests", outside},
	}, nil
}

// Print writes sections for people.
func Print(out io.Writer, sections []Section) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range sections {
		if _, err := fmt.Fprintf(w, "\n%s\n%s\n", s.Title, strings.Repeat("-", len(s.Title))); err != nil {
			return fmt.Errorf("printing the table: %w", err)
		}
		for _, r := range s.Rows {
			if _, err := fmt.Fprintf(w, "%s\t%s\n", r.Name, r.Value); err != nil {
				return fmt.Errorf("printing the table: %w", err)
			}
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("printing the table: %w", err)
		}
	}
	return nil
}

// or is a text, or "none" for an empty one.
func or(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return none
	}
	return text
}

// list joins words, or says that there are none.
func list(words []string) string { return or(strings.Join(words, ", ")) }
