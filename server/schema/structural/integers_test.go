package structural_test

import "testing"

const counted = `
type: object
properties:
  spec:
    type: object
    default: {size: 2.0}
    properties:
      size: {type: integer}
      port: {x-kubernetes-int-or-string: true}
      share: {type: number}
      sizes: {type: array, items: {type: integer}}
      named: {type: object, additionalProperties: {type: integer}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// TestWholeNumbers reads integers as integers however they were written.
func TestWholeNumbers(t *testing.T) {
	s := schema(t, counted)
	for _, c := range []struct {
		name string
		spec map[string]any
		read func(spec map[string]any) any
		want any
	}{
		{"a fraction of zero", map[string]any{"size": 3.0}, field("size"), int64(3)},
		{"an integer", map[string]any{"size": int64(3)}, field("size"), int64(3)},
		{"a fraction", map[string]any{"size": 3.5}, field("size"), 3.5},
		{"more than there are", map[string]any{"size": 1e19}, field("size"), 1e19},
		{"the first that is too large", map[string]any{"size": float64(1 << 63)}, field("size"), float64(1 << 63)},
		{"a port", map[string]any{"port": 80.0}, field("port"), int64(80)},
		{"a port with a name", map[string]any{"port": "http"}, field("port"), "http"},
		{"a number", map[string]any{"share": 3.0}, field("share"), 3.0},
		{"in a list", map[string]any{"sizes": []any{1.0, int64(2)}}, func(s map[string]any) any { return s["sizes"].([]any)[0] }, int64(1)},
		{"in a map", map[string]any{"named": map[string]any{"a": 1.0}}, func(s map[string]any) any { return s["named"].(map[string]any)["a"] }, int64(1)},
		{"where nothing is said", map[string]any{"free": map[string]any{"a": 1.0}}, func(s map[string]any) any { return s["free"].(map[string]any)["a"] }, 1.0},
		{"of another type", map[string]any{"sizes": 1.0}, field("sizes"), 1.0},
	} {
		obj := map[string]any{"spec": c.spec}
		if _, err := s.Coerce(obj); err != nil {
			t.Fatal(err)
		}
		if got := c.read(obj["spec"].(map[string]any)); got != c.want {
			t.Errorf("%s: got %T %v, want %T %v", c.name, got, got, c.want, c.want)
		}
	}
	obj := map[string]any{}
	s.Default(obj)
	if got := obj["spec"].(map[string]any)["size"]; got != int64(2) {
		t.Errorf("a default is %T %v", got, got)
	}
}

func field(name string) func(map[string]any) any {
	return func(spec map[string]any) any { return spec[name] }
}
