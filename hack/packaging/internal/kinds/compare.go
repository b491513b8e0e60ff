// Package kinds compares the custom resources of two versions, and judges objects by them as the API
// server does: who upgrades must neither lose what is stored nor have it refused.
package kinds

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Problems are what a newer definition takes from those who have the older one: a version, a field, a
// value. What it allows besides is none.
func Problems(older, newer *apiextensions.CustomResourceDefinition) []string {
	c := &comparison{}
	c.same("the group", older.Spec.Group, newer.Spec.Group)
	c.same("the scope", older.Spec.Scope, newer.Spec.Scope)
	c.same("the kind", older.Spec.Names.Kind, newer.Spec.Names.Kind)
	c.same("the list's kind", older.Spec.Names.ListKind, newer.Spec.Names.ListKind)
	c.same("the plural", older.Spec.Names.Plural, newer.Spec.Names.Plural)
	c.same("the singular", older.Spec.Names.Singular, newer.Spec.Names.Singular)
	c.kept("short name", older.Spec.Names.ShortNames, newer.Spec.Names.ShortNames)
	c.kept("category", older.Spec.Names.Categories, newer.Spec.Names.Categories)
	for i := range older.Spec.Versions {
		c.version(&older.Spec.Versions[i], newer.Spec.Versions)
	}
	slices.Sort(c.found)
	return c.found
}

type version = apiextensions.CustomResourceDefinitionVersion

// comparison gathers problems; path is where it is.
type comparison struct {
	path  string
	found []string
}

func (c *comparison) say(format string, args ...any) {
	where := c.path
	if where != "" {
		where += ": "
	}
	c.found = append(c.found, where+fmt.Sprintf(format, args...))
}

func (c *comparison) same(what string, older, newer any) {
	if !reflect.DeepEqual(older, newer) {
		c.say("%s was %v and is %v", what, show(older), show(newer))
	}
}

func (c *comparison) kept(what string, older, newer []string) {
	for _, word := range older {
		if !slices.Contains(newer, word) {
			c.say("the %s %s is gone", what, word)
		}
	}
}

func (c *comparison) below(step string, further func(*comparison)) {
	inner := &comparison{path: c.path + step}
	further(inner)
	c.found = append(c.found, inner.found...)
}

// version: OLM refuses an upgrade without a version that objects are stored in; and who speaks a
// version would find it gone.
func (c *comparison) version(older *version, all []version) {
	at := slices.IndexFunc(all, func(v version) bool { return v.Name == older.Name })
	if at < 0 {
		c.say("version %s is gone", older.Name)
		return
	}
	newer := &all[at]
	c.below(older.Name, func(c *comparison) {
		if older.Served && !newer.Served {
			c.say("is no longer served")
		}
		if hasStatus(older) != hasStatus(newer) {
			c.say("had a subresource status: %t, has one: %t", hasStatus(older), hasStatus(newer))
		}
		if !hasSchema(older) || !hasSchema(newer) {
			c.say("has no schema to compare")
			return
		}
		c.schema(older.Schema.OpenAPIV3Schema, newer.Schema.OpenAPIV3Schema)
	})
}

func hasStatus(v *version) bool { return v.Subresources != nil && v.Subresources.Status != nil }

func hasSchema(v *version) bool { return v.Schema != nil && v.Schema.OpenAPIV3Schema != nil }

func (c *comparison) schema(older, newer *apiextensions.JSONSchemaProps) {
	c.same("the type", older.Type, newer.Type)
	if newer.Format != "" {
		c.same("the format", older.Format, newer.Format)
	}
	if newer.Pattern != "" {
		c.same("the pattern", older.Pattern, newer.Pattern)
	}
	// What is stored without the field reads with the newer default, so a default is a promise as well.
	c.same("the default", older.Default, newer.Default)
	c.values(older, newer)
	c.bounds(older, newer)
	c.rules(older.XValidations, newer.XValidations)
	for what, strict := range map[string][2]bool{
		"unique items":                  {older.UniqueItems, newer.UniqueItems},
		"a whole object":                {older.XEmbeddedResource, newer.XEmbeddedResource},
		"a value (null is refused)":     {!older.Nullable, !newer.Nullable},
		"no unknown fields":             {!is(older.XPreserveUnknownFields), !is(newer.XPreserveUnknownFields)},
		"one of numbers and of strings": {!older.XIntOrString, !newer.XIntOrString},
	} {
		if !strict[0] && strict[1] {
			c.say("now wants %s", what)
		}
	}
	c.same("the type of the list", older.XListType, newer.XListType)
	c.same("the keys of the list", older.XListMapKeys, newer.XListMapKeys)
	c.same("the type of the map", older.XMapType, newer.XMapType)
	for what, either := range map[string][2][]apiextensions.JSONSchemaProps{
		"allOf": {older.AllOf, newer.AllOf}, "anyOf": {older.AnyOf, newer.AnyOf}, "oneOf": {older.OneOf, newer.OneOf},
	} {
		if !reflect.DeepEqual(either[0], either[1]) {
			c.say("%s has changed: see by hand what it still allows", what)
		}
	}
	if !reflect.DeepEqual(older.Not, newer.Not) {
		c.say("not has changed: see by hand what it still allows")
	}
	c.fields(older, newer)
}

// values are those of an enum, and which fields must be there.
func (c *comparison) values(older, newer *apiextensions.JSONSchemaProps) {
	if len(newer.Enum) > 0 && len(older.Enum) == 0 {
		c.say("the values are now limited")
	}
	for _, value := range older.Enum {
		same := func(v apiextensions.JSON) bool { return bytes.Equal(v.Raw, value.Raw) }
		if len(newer.Enum) > 0 && !slices.ContainsFunc(newer.Enum, same) {
			c.say("the value %s is no longer allowed", value.Raw)
		}
	}
	for _, name := range newer.Required {
		if !slices.Contains(older.Required, name) && newer.Properties[name].Default == nil {
			c.say("the field %s is now required", name)
		}
	}
}

// rules: whether a rule refuses more than another cannot be read from it, so a new one is told.
func (c *comparison) rules(older, newer apiextensions.ValidationRules) {
	for _, rule := range newer {
		if !slices.ContainsFunc(older, func(r apiextensions.ValidationRule) bool {
			return r.Rule == rule.Rule && is(r.OptionalOldSelf) == is(rule.OptionalOldSelf)
		}) {
			c.say("the rule is new: %s", rule.Rule)
		}
	}
}

// fields goes down to what is in an object, a list or a map.
func (c *comparison) fields(older, newer *apiextensions.JSONSchemaProps) {
	names := make([]string, 0, len(older.Properties))
	for name := range older.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field, more := older.Properties[name], newer.Properties[name]
		c.below("."+name, func(c *comparison) {
			if _, there := newer.Properties[name]; !there {
				c.say("the field is gone")
				return
			}
			c.schema(&field, &more)
		})
	}
	c.inside("[]", items(older), items(newer))
	c.inside("{}", values(older), values(newer))
}

func (c *comparison) inside(step string, older, newer *apiextensions.JSONSchemaProps) {
	c.below(step, func(c *comparison) {
		switch {
		case older != nil && newer != nil:
			c.schema(older, newer)
		case older != nil:
			c.say("what is in it is gone")
		}
	})
}

func items(s *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

func values(s *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

func is(flag *bool) bool { return flag != nil && *flag }

// show writes a value of the schema for people.
func show(value any) any {
	switch v := value.(type) {
	case *apiextensions.JSON:
		if v == nil {
			return "none"
		}
		return string(v.Raw)
	case *string:
		if v == nil {
			return "none"
		}
		return *v
	}
	if value == "" {
		return "none"
	}
	return value
}
