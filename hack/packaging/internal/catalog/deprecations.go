package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

const (
	deprecations = "olm.deprecations"
	bundleSchema = "olm.bundle"
)

// Deprecate notes that a version should be left, and tells users why and where to go. A version that
// is noted already gets the new message.
func (t *Template) Deprecate(v semver.Version, message string) error {
	if strings.TrimSpace(message) == "" {
		return errors.New("users must be told why the version should be left, and where to go: give a message")
	}
	versions, err := t.Versions(Candidate)
	if err != nil {
		return err
	}
	found := false
	for _, released := range versions {
		found = found || released.EQ(v)
	}
	if !found {
		return fmt.Errorf("version %s was not released; there are %v", v, versions)
	}
	entry := Entry{Reference: map[string]string{"schema": bundleSchema, "name": Name(v)}, Message: message}
	for i := range t.Objects {
		o := &t.Objects[i]
		if o.Schema != deprecations {
			continue
		}
		for j := range o.Entries {
			if o.Entries[j].Reference["name"] == Name(v) {
				o.Entries[j] = entry
				return nil
			}
		}
		o.Entries = append(o.Entries, entry)
		return nil
	}
	t.Objects = append(t.Objects, Object{Schema: deprecations, Package: Package, Entries: []Entry{entry}})
	return nil
}

// deprecationProblems are those of what is said to be deprecated: it must be there, users must be told
// why, and who follows it must have somewhere to go.
func deprecationProblems(t *Template, o *Object) []string {
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf("deprecations: "+format, args...)) }
	heads := map[string]string{}
	names := map[string]bool{}
	for i := range t.Objects {
		if c := &t.Objects[i]; c.Schema == "olm.channel" && len(c.Entries) > 0 {
			heads[c.Entries[len(c.Entries)-1].Name] = c.Name
			for _, e := range c.Entries {
				names[e.Name] = true
			}
		}
	}
	for _, e := range o.Entries {
		name := e.Reference["name"]
		switch schema := e.Reference["schema"]; {
		case e.Message == "":
			say("%s %s has no message", schema, name)
		case schema == bundleSchema && !names[name]:
			say("%s is in no channel", name)
		case schema == bundleSchema && heads[name] != "":
			say("%s is the newest of channel %s: nothing is there to go to", name, heads[name])
		case schema == "olm.channel" && t.Channel(name) == nil:
			say("there is no channel %s", name)
		case schema != bundleSchema && schema != "olm.channel" && schema != "olm.package":
			say("%q is nothing that can be deprecated", schema)
		}
	}
	return found
}
