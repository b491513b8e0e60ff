package runtimes

import (
	"encoding/json"
	"fmt"
)

// fields reads the parts of one entry one by one, so that every problem is found: decoding into
// a struct would stop at the first.
type fields struct {
	entry    int
	id       string
	problems []Problem
}

// part is an object inside the entry, with its path.
type part struct {
	path string
	of   map[string]json.RawMessage
}

func (f *fields) wrong(field, format string, args ...any) {
	f.problems = append(f.problems, Problem{Entry: f.entry, ID: f.id, Field: field, Message: fmt.Sprintf(format, args...)})
}

// take reads a field; the second result says whether it is there and of the right kind. A null is
// not there, as in the platform's own reading.
func take[T any](f *fields, from part, name, kind string) (T, bool) {
	var value T
	raw, there := from.of[name]
	if !there || string(raw) == "null" {
		return value, false
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		var zero T
		f.wrong(from.path+name, "it is %s: make it %s", clip(string(raw)), kind)
		return zero, false
	}
	return value, true
}

// inside is an object inside another; an empty one when it is not there.
func (f *fields) inside(from part, name string) part {
	of, _ := take[map[string]json.RawMessage](f, from, name, "an object")
	return part{path: from.path + name + ".", of: of}
}
