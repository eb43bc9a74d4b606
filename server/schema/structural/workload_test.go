package structural_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestFilledIn: the effect of defaults on the size of an object is known before they are put in.
func TestFilledIn(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	nested := `{type: object, properties: {s: {type: string, default: x}}}`
	for range 8 { // each level has ten times as many
		nested = `{type: object, properties: {l: {type: array, default: [` + strings.TrimSuffix(strings.Repeat("{},", 10), ",") + `], items: ` + nested + `}}}`
	}
	items := func(of string) string {
		return `{type: object, properties: {l: {type: array, items: ` + of + `}}}`
	}
	list := func(n int, item string) string {
		return `{l: [` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	var wide strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&wide, "p%d: {type: string}, ", i)
	}
	all := `{minLength: 1}`
	for range 10 {
		all = `{allOf: [` + all + `, ` + all + `]}`
	}
	for _, tc := range []struct {
		name, schema, object string
		refused              bool
	}{
		{"a long text for each item", items(`{type: object, properties: {x: {type: string, default: ` + long + `}}}`), list(1000, "{}"), true},
		{"... that has one", items(`{type: object, properties: {x: {type: string, default: ` + long + `}}}`), list(1000, "{x: a}"), false},
		{"... of a few", items(`{type: object, properties: {x: {type: string, default: ` + long + `}}}`), list(20, "{}"), false},
		{"for each null", items(`{type: string, default: ` + long + `}`), list(1000, "null"), true},
		{"for each null of a map", `{type: object, properties: {m: {type: object, additionalProperties: {type: string, default: ` + long + `}}}}`,
			`{m: {` + manyNulls(1000) + `}}`, true},
		{"lists in defaults of lists", nested, "{}", true},
		{"empty objects", items(`{type: object, properties: {x: {type: object, default: {}}}}`), list(100_000, "{}"), true},
		{"some empty objects", items(`{type: object, properties: {x: {type: object, default: {}}}}`), list(5000, "{}"), false},
		{"many properties", items(`{type: object, properties: {` + wide.String() + `}}`), list(10_000, "{}"), true},
		{"many conditions", items(`{type: string, allOf: [` + all + `]}`), list(20_000, "a"), true},
		{"... from above", `{type: object, properties: {l: {type: array, items: {type: string}, not: {items: ` + all + `}}}}`, list(20_000, "a"), true},
		{"many conditions of a few", items(`{type: string, allOf: [` + all + `]}`), list(1000, "a"), false},
		{"many properties of a few", items(`{type: object, properties: {` + wide.String() + `}}`), list(1000, "{}"), false},
	} {
		s, obj := schema(t, tc.schema), object(t, tc.object)
		had := len(text(t, obj))
		if _, err := s.Coerce(obj); apierrors.IsRequestEntityTooLargeError(err) != tc.refused || !tc.refused && err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err := s.CoerceStored(obj); err != nil {
			t.Errorf("%s, stored: %v", tc.name, err)
		}
		s.Default(obj)
		if has := len(text(t, obj)); has > 8<<20 || tc.refused && has != had {
			t.Errorf("%s: %d bytes became %d", tc.name, had, has)
		}
	}
}

func manyNulls(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: null, ", i)
	}
	return b.String()
}
