package kinds_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/kinds"
)

const definition = `
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [th], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [name]
            properties:
              name: {type: string, minLength: 1, maxLength: 9, pattern: "^a", x-kubernetes-validations: [{rule: self != 'b'}]}
              size: {type: integer, format: int64, minimum: 1, maximum: 9, default: 3}
              half: {type: number}
              mode: {type: string, enum: [a, b]}
              free: {type: string, nullable: true}
              any: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true}
              list: {type: array, maxItems: 5, x-kubernetes-list-type: atomic, items: {type: string, maxLength: 9}}
              map: {type: object, maxProperties: 5, x-kubernetes-map-type: granular, additionalProperties: {type: string, maxLength: 9}}
`

func thing(t *testing.T, text string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensions.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// takesAway are changes of the definition, each with what is told of it.
var takesAway = []struct{ from, to, want string }{
	{"group: example.com", "group: example.org", "the group was example.com"},
	{"scope: Namespaced", "scope: Cluster", "the scope was Namespaced"},
	{"kind: Thing,", "kind: Things,", "the kind was Thing"},
	{"listKind: ThingList", "listKind: Things", "the list's kind was"},
	{"plural: things", "plural: thingies", "the plural was things"},
	{"singular: thing", "singular: th", "the singular was thing"},
	{"shortNames: [th], ", "", "the short name th is gone"},
	{"categories: [all]", "categories: [others]", "the category all is gone"},
	{"name: v1", "name: v2", "version v1 is gone"},
	{"served: true", "served: false", "v1: is no longer served"},
	{"{status: {}}", "{}", "v1: had a subresource status: true"},
	{"required: [name]", "required: [name, half]", "v1.spec: the field half is now required"},
	{"half: {type: number}", "", "v1.spec.half: the field is gone"},
	{"half: {type: number}", "half: {type: integer}", "v1.spec.half: the type was number and is integer"},
	{"half: {type: number}", "half: {type: number, multipleOf: 2}", "v1.spec.half: multipleOf was none and is 2"},
	{"minimum: 1", "minimum: 1, exclusiveMinimum: true", "v1.spec.size: the minimum itself"},
	{"maximum: 9", "maximum: 9, exclusiveMaximum: true", "v1.spec.size: the maximum itself"},
	{"half: {type: number}", "half: {type: number, default: 1}", "v1.spec.half: the default was none and is 1"},
	{"half: {type: number}", "half: {type: number, enum: [1]}", "v1.spec.half: the values are now limited"},
	{"half: {type: number}", "half: {type: number, not: {enum: [1]}}", "v1.spec.half: not has changed"},
	{"half: {type: number}", "half: {type: number, allOf: [{maximum: 3}]}", "v1.spec.half: allOf has changed"},
	{"half: {type: number}", "half: {type: number, oneOf: [{maximum: 3}]}", "v1.spec.half: oneOf has changed"},
	{"anyOf: [{type: integer}, {type: string}]", "anyOf: [{type: integer}]", "v1.spec.any: anyOf has changed"},
	{"x-kubernetes-int-or-string: true, ", "", "v1.spec.any: now wants one of numbers"},
	{"minLength: 1", "minLength: 2", "v1.spec.name: minLength was 1 and is 2"},
	{"maxLength: 9, pattern", "maxLength: 8, pattern", "v1.spec.name: maxLength was 9 and is 8"},
	{`pattern: "^a"`, `pattern: "^b"`, "v1.spec.name: the pattern was ^a and is ^b"},
	{"rule: self != 'b'", "rule: self != 'c'", "v1.spec.name: the rule is new: self != 'c'"},
	{"rule: self != 'b'", "rule: self != 'b', optionalOldSelf: true", "v1.spec.name: the rule is new"},
	{"format: int64", "format: int32", "v1.spec.size: the format was int64"},
	{"minimum: 1", "minimum: 2", "v1.spec.size: minimum was 1 and is 2"},
	{"maximum: 9", "maximum: 8", "v1.spec.size: maximum was 9 and is 8"},
	{"default: 3", "default: 4", "v1.spec.size: the default was 3 and is 4"},
	{", default: 3", "", "v1.spec.size: the default was 3 and is none"},
	{"enum: [a, b]", "enum: [a, c]", `v1.spec.mode: the value "b" is no longer allowed`},
	{"nullable: true", "nullable: false", "v1.spec.free: now wants a value"},
	{"unknown-fields: true", "unknown-fields: false", "v1.spec.open: now wants no unknown fields"},
	{"unknown-fields: true", "unknown-fields: true, x-kubernetes-embedded-resource: true", "v1.spec.open: now wants a whole object"},
	{"maxItems: 5", "maxItems: 4", "v1.spec.list: maxItems was 5 and is 4"},
	{"maxItems: 5", "maxItems: 5, minItems: 1", "v1.spec.list: minItems was none and is 1"},
	{"maxItems: 5", "maxItems: 5, uniqueItems: true", "v1.spec.list: now wants unique items"},
	{"list-type: atomic", "list-type: set", "v1.spec.list: the type of the list was atomic"},
	{"list-type: atomic", "list-type: atomic, x-kubernetes-list-map-keys: [a]", "v1.spec.list: the keys of the list was"},
	{"items: {type: string, maxLength: 9}", "items: {type: string, maxLength: 8}", "v1.spec.list[]: maxLength was 9"},
	{", items: {type: string, maxLength: 9}", "", "v1.spec.list[]: what is in it is gone"},
	{"maxProperties: 5", "maxProperties: 4", "v1.spec.map: maxProperties was 5"},
	{"maxProperties: 5", "maxProperties: 5, minProperties: 1", "v1.spec.map: minProperties was none and is 1"},
	{"map-type: granular", "map-type: atomic", "v1.spec.map: the type of the map was granular"},
	{"Properties: {type: string, maxLength: 9", "Properties: {type: string, maxLength: 8", "v1.spec.map{}: maxLength was 9"},
}

// Each change that takes something away is told, with its place; nothing else is.
func TestCase53WhatANewerDefinitionTakesAway(t *testing.T) {
	for _, c := range takesAway {
		changed := strings.Replace(definition, c.from, c.to, 1)
		if changed == definition {
			t.Fatalf("the definition does not hold %s", c.from)
		}
		found := kinds.Problems(thing(t, definition), thing(t, changed))
		if len(found) != 1 || !strings.Contains(found[0], c.want) {
			t.Errorf("%s for %s: told is %q, want %q", c.to, c.from, found, c.want)
		}
	}
}

// What allows more is no problem, the way back is one.
func TestCase53WhatANewerDefinitionMayAdd(t *testing.T) {
	for _, c := range [][2]string{
		{"half: {type: number}", "half: {type: number}\n              more: {type: string}"},
		{"half: {type: number}", "half: {type: number, nullable: true}"},
		{"required: [name]", "required: []"},
		{"minLength: 1", "minLength: 0"},
		{"maxLength: 9", "maxLength: 10"},
		{", pattern: \"^a\"", ""},
		{", x-kubernetes-validations: [{rule: self != 'b'}]", ""},
		{"maximum: 9, ", ""},
		{"enum: [a, b]", "enum: [a, b, c]"},
		{", enum: [a, b]", ""},
		{"categories: [all]", "categories: [all, more]"},
	} {
		changed := strings.Replace(definition, c[0], c[1], 1)
		if found := kinds.Problems(thing(t, definition), thing(t, changed)); len(found) > 0 {
			t.Errorf("%s for %s: %q", c[1], c[0], found)
		}
		if found := kinds.Problems(thing(t, changed), thing(t, definition)); len(found) != 1 {
			t.Errorf("%s for %s: told is %q, want one problem", c[0], c[1], found)
		}
	}
}

// A word of schemas that nobody has thought of must not pass unseen.
func TestCase53EveryWordOfSchemasIsKnown(t *testing.T) {
	compared := strings.Fields(`Type Format Default Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern
		MaxItems MinItems UniqueItems MultipleOf Enum MaxProperties MinProperties Required Items AllOf OneOf AnyOf Not Properties
		AdditionalProperties Nullable XPreserveUnknownFields XEmbeddedResource XIntOrString XListMapKeys XListType XMapType XValidations`)
	saysNothing := strings.Fields("Description Title ExternalDocs Example")
	// The API server takes no definition with one of these.
	refused := strings.Fields("ID Schema Ref PatternProperties Dependencies AdditionalItems Definitions")
	for field := range reflect.TypeFor[apiextensions.JSONSchemaProps]().Fields() {
		if !slices.Contains(slices.Concat(compared, saysNothing, refused), field.Name) {
			t.Errorf("%s is not compared", field.Name)
		}
	}
}
