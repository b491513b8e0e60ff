package catalog

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
)

// Problems tells in sentences what is wrong with the graph. OLM resolves upgrades in each channel
// by itself, so each is looked at by itself.
func Problems(t *Template) []string {
	var found []string
	channels := 0
	for i := range t.Objects {
		switch o := &t.Objects[i]; o.Schema {
		case "olm.channel":
			channels++
			found = append(found, channelProblems(o)...)
		case deprecations:
			found = append(found, deprecationProblems(t, o)...)
		case "olm.package":
			if t.Channel(o.DefaultChannel) == nil {
				found = append(found, fmt.Sprintf("the default channel %q is none of the channels", o.DefaultChannel))
			}
		}
	}
	if channels == 0 {
		found = append(found, "there is no channel")
	}
	return found
}

func channelProblems(channel *Object) []string {
	var found []string
	say := func(format string, args ...any) {
		found = append(found, fmt.Sprintf("channel "+channel.Name+": "+format, args...))
	}
	byName := map[string]Entry{}
	versions := map[string]semver.Version{}
	for _, e := range channel.Entries {
		v, err := Version(e.Name)
		if err != nil {
			say("%v", err)
			return found
		}
		if _, twice := byName[e.Name]; twice {
			say("%s is there twice", e.Name)
		}
		byName[e.Name], versions[e.Name] = e, v
	}
	replaced := map[string]bool{}
	for _, e := range channel.Entries {
		for _, older := range append(slices.Clone(e.Skips), e.Replaces) {
			if older == "" {
				continue
			}
			replaced[older] = true
			if _, there := byName[older]; !there {
				say("%s replaces or skips %s, which is not in the channel", e.Name, older)
			} else if versions[older].GTE(versions[e.Name]) {
				say("%s replaces or skips %s, which is not older", e.Name, older)
			}
		}
		if e.SkipRange != "" {
			inRange, err := semver.ParseRange(e.SkipRange)
			if err != nil {
				say("%s: skipRange %q: %v", e.Name, e.SkipRange, err)
			} else if inRange(versions[e.Name]) {
				say("%s: skipRange %q holds the version itself", e.Name, e.SkipRange)
			}
		}
	}
	var heads []string
	for _, e := range channel.Entries {
		if !replaced[e.Name] {
			heads = append(heads, e.Name)
		}
	}
	if len(heads) != 1 {
		say("the heads are %v, want one", heads)
		return found
	}
	for _, e := range channel.Entries {
		if !reaches(channel, byName, heads[0], e.Name) {
			say("%s is stranded: nothing leads from it to %s", e.Name, heads[0])
		}
	}
	return found
}

// reaches follows upgrades from the head back.
func reaches(channel *Object, byName map[string]Entry, head, from string) bool {
	seen := map[string]bool{}
	next := []string{head}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if name == from {
			return true
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		e := byName[name]
		next = append(next, e.Skips...)
		if e.Replaces != "" {
			next = append(next, e.Replaces)
		}
		if inRange, err := semver.ParseRange(e.SkipRange); e.SkipRange != "" && err == nil {
			for _, other := range channel.Entries {
				if v, err := Version(other.Name); err == nil && inRange(v) {
					next = append(next, other.Name)
				}
			}
		}
	}
	return false
}
