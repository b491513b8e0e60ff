package kinds

import (
	"fmt"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// bound is a limit of a schema. Its sign says in which direction it is tightened: +1 is a lower bound,
// -1 an upper one.
type bound struct {
	name         string
	sign         float64
	older, newer *float64
}

// bounds are those of numbers, texts, lists and maps.
func (c *comparison) bounds(older, newer *apiextensions.JSONSchemaProps) {
	for _, b := range []bound{
		{"minimum", 1, older.Minimum, newer.Minimum},
		{"maximum", -1, older.Maximum, newer.Maximum},
		{"minLength", 1, number(older.MinLength), number(newer.MinLength)},
		{"maxLength", -1, number(older.MaxLength), number(newer.MaxLength)},
		{"minItems", 1, number(older.MinItems), number(newer.MinItems)},
		{"maxItems", -1, number(older.MaxItems), number(newer.MaxItems)},
		{"minProperties", 1, number(older.MinProperties), number(newer.MinProperties)},
		{"maxProperties", -1, number(older.MaxProperties), number(newer.MaxProperties)},
	} {
		if b.newer != nil && (b.older == nil || *b.newer*b.sign > *b.older*b.sign) {
			c.say("%s was %s and is %s", b.name, limit(b.older), limit(b.newer))
		}
	}
	if newer.ExclusiveMinimum && !older.ExclusiveMinimum {
		c.say("the minimum itself is no longer allowed")
	}
	if newer.ExclusiveMaximum && !older.ExclusiveMaximum {
		c.say("the maximum itself is no longer allowed")
	}
	if newer.MultipleOf != nil {
		c.same("multipleOf", limit(older.MultipleOf), limit(newer.MultipleOf))
	}
}

func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

func limit(f *float64) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprint(*f)
}
