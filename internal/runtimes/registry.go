package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Where the registry is; source: the contract.
const (
	// RegistryConfigMap names the ConfigMap in the operator's own namespace.
	RegistryConfigMap = "ambient-agent-registry"
	// RegistryKey is its key that holds the list of types.
	RegistryKey = "agent-registry.json"
)

// Registry is every runner type of a cluster, and what keeps others from being used.
type Registry struct {
	types map[string]Runtime
	// broken has the problems of the entries that cannot be used, by their id.
	broken map[string][]Problem
	// nameless are the problems for which no single type can be blamed: those of the whole text,
	// and of entries without an id.
	nameless []Problem
}

// Problem is one thing that is wrong in the registry, with what to do about it.
type Problem struct {
	// Entry is the place in the list, from 1; 0 is the list itself.
	Entry int
	// ID is the entry's id, as far as it has one.
	ID string
	// Field is the path of the field in the entry; empty for the entry itself.
	Field   string
	Message string
}

// String is the problem as a part of a sentence.
func (p Problem) String() string {
	var place []string
	if p.Entry > 0 {
		entry := fmt.Sprintf("entry %d", p.Entry)
		if p.ID != "" {
			entry += fmt.Sprintf(" (%s)", quote(p.ID))
		}
		place = append(place, entry)
	}
	if p.Field != "" {
		place = append(place, p.Field)
	}
	return strings.Join(append(place, p.Message), ": ")
}

// Unknown is the error of a type that the registry does not list.
type Unknown struct {
	ID    string
	Known []string
}

func (u *Unknown) Error() string {
	return fmt.Sprintf("the runner type %s is not known: set %s in spec.environmentVariables to one of %s", quote(u.ID), TypeVariable, first(u.Known, ", "))
}

// Broken is the error of a type that cannot be used, or looked for, until the registry is mended.
type Broken struct {
	ID       string
	Problems []Problem
}

func (b *Broken) Error() string {
	problems := make([]string, len(b.Problems))
	for i := range b.Problems {
		problems[i] = b.Problems[i].String()
	}
	return fmt.Sprintf("the runner type %s cannot be used: %s", quote(b.ID), first(problems, "; "))
}

// BuiltIn is the registry of a cluster that has none of its own.
func BuiltIn(defaults Defaults) *Registry {
	builtIn := Default(defaults.RunnerImage)
	builtIn.StateSyncImage = defaults.StateSyncImage
	return &Registry{types: map[string]Runtime{DefaultID: builtIn}}
}

// Of is the registry that a ConfigMap with this data holds.
func Of(data map[string]string, defaults Defaults) *Registry {
	text, there := data[RegistryKey]
	if !there {
		return unreadable(fmt.Sprintf("the key %s is missing: put the list of runner types there, or remove the ConfigMap to have the built-in type alone", RegistryKey))
	}
	return Parse(text, defaults)
}

// Parse reads a registry. It never fails: what is wrong is found out by looking a type up, or with
// Problems.
func Parse(text string, defaults Defaults) *Registry {
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return unreadable(fmt.Sprintf("%s is not a list in JSON (%s): correct it", RegistryKey, syntax(text, err)))
	}
	if entries == nil {
		return unreadable(RegistryKey + " is null: make it a list of runner types, or remove the ConfigMap to have the built-in type alone")
	}
	r := &Registry{types: map[string]Runtime{}, broken: map[string][]Problem{}}
	places := map[string]int{}
	for i, raw := range entries {
		runtime, problems := readEntry(i+1, raw, defaults)
		id := runtime.ID
		if id == "" {
			r.nameless = append(r.nameless, problems...)
			continue
		}
		if earlier, twice := places[id]; twice {
			problems = append(problems, Problem{Entry: i + 1, ID: id, Field: "id", Message: fmt.Sprintf("entry %d has the same id: give each its own", earlier)})
		} else {
			places[id] = i + 1
		}
		if len(problems) > 0 {
			r.broken[id] = append(r.broken[id], problems...)
			continue
		}
		r.types[id] = runtime
	}
	for id := range r.broken {
		delete(r.types, id)
	}
	return r
}

func unreadable(message string) *Registry {
	return &Registry{nameless: []Problem{{Message: message}}}
}

// syntax says what keeps text from being JSON, with the line.
func syntax(text string, err error) string {
	offset := int64(-1)
	var badSyntax *json.SyntaxError
	var badType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &badSyntax):
		offset = badSyntax.Offset
	case errors.As(err, &badType):
		return "it is " + badType.Value
	}
	if offset < 0 || offset > int64(len(text)) {
		return clip(err.Error())
	}
	return fmt.Sprintf("line %d: %s", strings.Count(text[:offset], "\n")+1, clip(err.Error()))
}

// Lookup finds a type. The error is an *Unknown where the session asks for a type that there is not, and
// a *Broken where the registry is to be mended.
func (r *Registry) Lookup(id string) (Runtime, error) {
	if runtime, ok := r.types[id]; ok {
		return runtime, nil
	}
	if problems := r.broken[id]; len(problems) > 0 {
		return Runtime{}, &Broken{ID: id, Problems: problems}
	}
	if len(r.nameless) > 0 {
		// It may be the one whose name cannot be read.
		return Runtime{}, &Broken{ID: id, Problems: r.nameless}
	}
	if problems := r.lacking(id); len(problems) > 0 {
		return Runtime{}, &Broken{ID: id, Problems: problems}
	}
	return Runtime{}, &Unknown{ID: id, Known: r.Known()}
}

// lacking says why it is not a session's mistake that a type is not listed.
func (r *Registry) lacking(id string) []Problem {
	switch {
	case len(r.broken) == 0 && len(r.types) == 0:
		return []Problem{{Message: RegistryKey + " lists no runner type: add one, or remove the ConfigMap to have the built-in type alone"}}
	case len(r.types) == 0:
		return r.Problems()
	case id == DefaultID:
		return []Problem{{Message: fmt.Sprintf("it is the type of sessions that pick none, and is not listed: add it, or have the session pick one of %s with %s in spec.environmentVariables", first(r.Known(), ", "), TypeVariable)}}
	default:
		return nil
	}
}

// Known lists the ids of the types that can be used, in order.
func (r *Registry) Known() []string {
	return slices.Sorted(maps.Keys(r.types))
}

// Ports lists where the types that can be used serve, in order of their ids.
func (r *Registry) Ports() []int32 {
	var ports []int32
	for _, id := range r.Known() {
		ports = append(ports, r.types[id].Port)
	}
	return ports
}

// Problems lists everything that is wrong, in the order of the entries.
func (r *Registry) Problems() []Problem {
	all := slices.Clone(r.nameless)
	for _, id := range slices.Sorted(maps.Keys(r.broken)) {
		all = append(all, r.broken[id]...)
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return a.Entry - b.Entry })
	return all
}

// Messages end up in the status of sessions, which has limits, so what was written by others is
// repeated in part only.
const (
	longestQuote = 80
	longestPart  = 1000
	mostListed   = 10
)

func quote(text string) string { return fmt.Sprintf("%q", clip(text)) }

func clip(text string) string {
	runes := []rune(text)
	if len(runes) <= longestQuote {
		return text
	}
	return string(runes[:longestQuote]) + "..."
}

func first(parts []string, separator string) string {
	listed := slices.Clone(parts[:min(len(parts), mostListed)])
	for i, part := range listed {
		if len(part) > longestPart {
			listed[i] = strings.ToValidUTF8(part[:longestPart], "") + "..."
		}
	}
	if more := len(parts) - mostListed; more > 0 {
		listed = append(listed, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(listed, separator)
}
