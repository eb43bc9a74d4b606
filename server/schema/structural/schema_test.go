package structural_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/schema/structural"
	"github.com/rowlock/rowlock/server/status"
)

// version returns a version whose schema, of spec and status, is given in YAML.
func version(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	v := &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{},
	}}
	if err := yaml.UnmarshalStrict([]byte(text), v.Schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	return v
}

func schema(t testing.TB, text string) *structural.Schema {
	t.Helper()
	s, err := structural.New(version(t, text), false, release.Default)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var obj map[string]any
	if err := utiljson.Unmarshal(data, &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func text(t testing.TB, obj any) string {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const pruned = `
type: object
properties:
  spec:
    type: object
    properties:
      size: {type: integer, default: 3}
      note: {type: string, nullable: true}
      gone: {type: string}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {inner: {type: object, properties: {a: {type: string}}}}}
      labels: {type: object, additionalProperties: {type: string}}
      list: {type: array, items: {type: object, properties: {num: {type: integer, default: 1}}}}
      pod: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object, properties: {x: {type: string}}}}}
`

// TestSettled: objects that Coerce or Default would change.
func TestSettled(t *testing.T) {
	s := schema(t, strings.ReplaceAll(pruned, "x-kubernetes-embedded-resource", "nullable"))
	for text, want := range map[string]bool{
		"{spec: {size: 1, note: null, free: {w: {z: 1}}, labels: {a: b}, list: [{num: 2}]}}": true,
		"{kind: A, metadata: {odd: 1}}":            true,
		"{spec: {}}":                               false,
		"{spec: {size: null}}":                     false,
		"{spec: {size: 1, gone: null}}":            false,
		"{spec: {size: 1, list: [{}]}}":            false,
		"{spec: {size: 1, labels: {a: null}}}":     false,
		"{spec: {size: 1, more: 1}}":               false,
		"{spec: {size: 1, free: {inner: {b: r}}}}": false,
		"{more: 1}": false,
	} {
		if got := s.Settled(object(t, text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if schema(t, pruned).Settled(object(t, "{}")) {
		t.Error("a schema with embedded resources")
	}
}

func TestCoerceAndDefault(t *testing.T) {
	s := schema(t, pruned)
	for _, c := range []struct{ obj, want, unknown string }{
		{"{}", `{}`, ""},
		{"{spec: {}}", `{"spec":{"size":3}}`, ""},
		{"{kind: A, apiVersion: b/v1, spec: {size: null, note: null, gone: null}}", `{"apiVersion":"b/v1","kind":"A","spec":{"note":null,"size":3}}`, ""},
		{"{extra: 1, spec: {more: {x: 1}, free: {w: {z: 1}, inner: {a: q, b: r}}}}", `{"spec":{"free":{"inner":{"a":"q"},"w":{"z":1}},"size":3}}`, "extra,spec.free.inner.b,spec.more"},
		{"{spec: {labels: {a: b, c: null}, list: [{num: 2, m: 3}, {}]}}", `{"spec":{"labels":{"a":"b"},"list":[{"num":2},{"num":1}],"size":3}}`, "spec.list[0].m"},
		{"{metadata: {name: a, odd: 1}}", `{"metadata":{"creationTimestamp":null,"name":"a"}}`, "metadata.odd"},
		{"{spec: {pod: {kind: P, apiVersion: v1, what: 1, metadata: {name: p, odd: 1}, spec: {x: b, w: c}}}}",
			`{"spec":{"pod":{"apiVersion":"v1","kind":"P","metadata":{"name":"p"},"spec":{"x":"b"}},"size":3}}`, "spec.pod.metadata.odd,spec.pod.spec.w,spec.pod.what"},
	} {
		obj := object(t, c.obj)
		unknown, err := s.Coerce(obj)
		if err != nil {
			t.Errorf("%s: %v", c.obj, err)
			continue
		}
		s.Default(obj)
		slices.Sort(unknown)
		if got := text(t, obj); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.obj, got, c.want)
		}
		if got := strings.Join(unknown, ","); got != c.unknown {
			t.Errorf("%s: unknown %s, want %s", c.obj, got, c.unknown)
		}
	}
}

// TestCoerceMerged: a null that is not allowed is refused in an apply, where other writes drop it; one with a
// default still gets that.
func TestCoerceMerged(t *testing.T) {
	s := schema(t, pruned)
	for body, refused := range map[string]bool{
		"{spec: {labels: {c: null}}}":        true,
		"{spec: {list: null}}":               true,
		"{spec: {size: null, note: null}}":   false,
		"{spec: {labels: {c: d}, list: []}}": false,
	} {
		for _, merged := range []bool{true, false} {
			obj := object(t, body)
			err := s.CoerceMerged(obj)
			if !merged {
				_, err = s.Coerce(obj)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Default(obj)
			if errs := s.Validate(t.Context(), nil, obj, nil); len(errs) > 0 != (refused && merged) {
				t.Errorf("%s, merged %v: %v", body, merged, errs)
			}
		}
	}
}

func TestMalformedMetadata(t *testing.T) {
	s := schema(t, pruned)
	const malformed = "{metadata: {name: a, labels: {b: 1}, annotations: {c: d}}}"
	if _, err := s.Coerce(object(t, malformed)); err == nil {
		t.Error("a label that is a number was taken from a client")
	}
	obj := object(t, malformed)
	if err := s.CoerceStored(obj); err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, obj), `{"metadata":{"annotations":{"c":"d"},"creationTimestamp":null,"generation":1,"name":"a"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

const ruled = `
type: object
properties:
  spec:
    type: object
    required: [name]
    x-kubernetes-validations:
    - {rule: "self.min <= self.max", message: "min above max", fieldPath: ".min", reason: FieldValueForbidden}
    - {rule: "!has(oldSelf.name) || self.name == oldSelf.name", messageExpression: "'was ' + oldSelf.name"}
    properties:
      name: {type: string, maxLength: 5, pattern: "^[a-z]*$"}
      min: {type: integer, minimum: 0}
      max: {type: integer}
      kind: {type: string, enum: [a, b]}
      port: {x-kubernetes-int-or-string: true}
      when: {type: string, format: date-time}
      odd: {type: string, format: what-is-this}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      items: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: string, maxLength: 2}}}}
      pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
`

func TestValidate(t *testing.T) {
	s := schema(t, ruled)
	for _, c := range []struct{ name, obj, old, want, warned string }{
		{"valid", "{spec: {name: a, min: 1, max: 2}}", "", "", ""},
		{"required stops the rules", "{spec: {min: 3, max: 2}}", "", `spec.name: Required value; <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`, ""},
		{"rule", "{spec: {name: a, min: 3, max: 2}}", "", `spec.min: Forbidden: min above max`, ""},
		{"pattern does not stop the rules", "{spec: {name: A, min: 3, max: 2}}", "", `spec.name: Invalid value: "A": spec.name in body should match '^[a-z]*$'; spec.min: Forbidden: min above max`, ""},
		{"rule without its field", "{spec: {name: a}}", "", `spec: Invalid value: "object": no such key: min evaluating rule: min above max`, ""},
		{"enum", "{spec: {name: a, min: 1, max: 2, kind: c}}", "", `spec.kind: Unsupported value: "c": supported values: "a", "b"; <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`, ""},
		{"type", "{spec: {name: a, min: 1, max: 2, port: true}}", "", `spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"; <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`, ""},
		{"format", "{spec: {name: a, min: 1, max: 2, when: later, odd: any}}", "", `spec.when: Invalid value: "later": spec.when in body must be of type date-time: "later"; <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`, ""},
		{"set", "{spec: {name: a, min: 1, max: 2, tags: [x, z, x, x]}}", "", `spec.tags[2]: Duplicate value: "x"`, ""},
		{"map", "{spec: {name: a, min: 1, max: 2, items: [{k: x}, {k: x}]}}", "", `spec.items[1]: Duplicate value: map[string]interface {}{"k":"x"}`, ""},
		{"embedded", "{spec: {name: a, min: 1, max: 2, pod: {kind: P}}}", "", `spec.pod.apiVersion: Required value: must not be empty; <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`, ""},
		{"transition", "{spec: {name: b, min: 1, max: 2}}", "{spec: {name: a, min: 1, max: 2}}", `spec: Invalid value: "object": was a`, ""},
		{"unchanged value", "{spec: {name: TOOLONG, min: 1, max: 3}}", "{spec: {name: TOOLONG, min: 1, max: 2}}", "", ""},
		{"changed value", "{spec: {name: a, min: -1, max: 3}}", "{spec: {name: a, min: -2, max: 2}}", `spec.min: Invalid value: -1: spec.min in body should be greater than or equal to 0`, ""},
		{"unchanged item of a map", "{spec: {name: a, min: 1, max: 2, items: [{k: a}, {k: b, v: long}]}}", "{spec: {name: a, min: 1, max: 2, items: [{k: b, v: long}]}}", "", ""},
		{"unchanged rule", "{spec: {name: a, min: 3, max: 2}, metadata: {name: x}}", "{spec: {name: a, min: 3, max: 2}}", "", `299 - "spec.min: Forbidden: min above max"`},
		{"repeated before", "{spec: {name: a, min: 1, max: 2, tags: [x, x, z, z]}}", "{spec: {name: a, min: 1, max: 2, tags: [x, x]}}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{}
			ctx := request.With(t.Context(), request.NewScope(header, time.Time{}))
			var got []string
			for _, err := range s.Validate(ctx, nil, object(t, c.obj), object(t, c.old)) {
				got = append(got, status.Text(release.Default, err))
			}
			if got := strings.Join(got, "; "); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if got := header.Get("Warning"); got != c.warned {
				t.Errorf("warned %q, want %q", got, c.warned)
			}
		})
	}
}

// TestStatusKeepsFaults: from release 1.33 on, a write of the status may keep parts that were invalid before.
func TestStatusKeepsFaults(t *testing.T) {
	const text = `{type: object, properties: {status: {type: object, properties: {
		m: {type: integer, maximum: 10, x-kubernetes-validations: [{rule: "self < 5", message: bad}]}, s: {type: string}}}}}`
	const both = "status.m: Invalid value: 20: m in body should be less than or equal to 10; status.m: Invalid value: 20: bad"
	for v, want := range map[release.Version]string{
		release.V132: `status.m: Invalid value: 20: m in body should be less than or equal to 10; status.m: Invalid value: "integer": bad`, release.V133: "", release.V136: "",
	} {
		s, err := structural.New(version(t, text), false, v)
		if err != nil {
			t.Fatal(err)
		}
		validate := func(obj, old string) string {
			var got []string
			for _, err := range s.ValidateStatus(request.With(t.Context(), request.NewScope(http.Header{}, time.Time{})), nil, object(t, obj), object(t, old)) {
				got = append(got, status.Text(v, err))
			}
			return strings.Join(got, "; ")
		}
		if got := validate("{status: {m: 20, s: b}}", "{status: {m: 20}}"); got != want {
			t.Errorf("%s, kept:\n got %s\nwant %s", v, got, want)
		}
		if got := validate("{status: {m: 20}}", "{status: {m: 21}}"); v != release.V132 && got != both {
			t.Errorf("%s, changed:\n got %s\nwant %s", v, got, both)
		}
	}
}

// TestRuleValues: from release 1.33 on, the error of a rule that does not hold shows scalars, and nothing of other values.
func TestRuleValues(t *testing.T) {
	const ruled = `{type: object, properties: {
		s: {type: string, x-kubernetes-validations: [{rule: "self == 'a'", message: bad}]},
		i: {type: integer, x-kubernetes-validations: [{rule: "self < 1", message: bad}]},
		b: {type: boolean, x-kubernetes-validations: [{rule: self, message: bad}]},
		x: {x-kubernetes-int-or-string: true, x-kubernetes-validations: [{rule: "self == 'a'", message: bad}]},
		d: {type: string, x-kubernetes-validations: [{rule: "self == 'a'", reason: FieldValueDuplicate}]},
		r: {type: string, x-kubernetes-validations: [{rule: "self == 'a'", reason: FieldValueRequired, message: bad}]},
		o: {type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: "self.a == 'a'", message: bad}]},
		e: {type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: "self.a == 'a'", message: bad}]},
		l: {type: array, maxItems: 3, items: {type: string}, x-kubernetes-validations: [{rule: "self.size() > 9", reason: FieldValueDuplicate}]}}}`
	for _, c := range []struct{ obj, before, from string }{
		{"{s: <b>}", `s: Invalid value: "string": bad`, `s: Invalid value: "<b>": bad`},
		{"{i: 5}", `i: Invalid value: "integer": bad`, `i: Invalid value: 5: bad`},
		{"{b: false}", `b: Invalid value: "boolean": bad`, `b: Invalid value: false: bad`},
		{"{x: 7}", `x: Invalid value: "": bad`, `x: Invalid value: 7: bad`},
		{"{d: b}", `d: Duplicate value: "string"`, `d: Duplicate value: "b"`},
		{"{r: b}", `r: Required value: bad`, `r: Required value: bad`},
		{"{o: {a: b}}", `o: Invalid value: "object": bad`, `o: Invalid value: bad`},
		{"{e: {}}", `e: Invalid value: "object": no such key: a evaluating rule: bad`, `e: Invalid value: "object": no such key: a evaluating rule: bad`},
		{"{l: [a]}", `l: Duplicate value: "array"`, `l: Duplicate value`},
	} {
		wantByRelease(t, ruled, c.obj, c.before, c.from)
	}
}

// wantByRelease validates an object, and compares the errors with those of release 1.32, and of later ones.
func wantByRelease(t *testing.T, schema, obj, before, from string) {
	t.Helper()
	for v, want := range map[release.Version]string{release.V132: before, release.V133: from, release.V136: from} {
		s, err := structural.New(version(t, schema), false, v)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, err := range s.Validate(t.Context(), nil, object(t, obj), nil) {
			got = append(got, status.Text(v, err))
		}
		if got := strings.Join(got, "; "); got != want {
			t.Errorf("%s, %s:\n got %s\nwant %s", v, obj, got, want)
		}
	}
}

// TestFormatsByType: servers of release 1.32 know no formats of numbers and hold values of each type
// against the other formats. From 1.33 on, a format counts for its own types only.
func TestFormatsByType(t *testing.T) {
	const typed = `{type: object, properties: {small: {type: integer, format: int32}, large: {type: integer, format: int64}, share: {type: number, format: double}, day: {type: boolean, format: date}}}`
	for _, c := range []struct{ obj, before, from string }{
		{"{small: true}", `small: Invalid value: "boolean": small in body must be of type integer: "boolean"`, `small: Invalid value: "": small in body must be of type int32: ""`},
		{"{large: {}}", `large: Invalid value: "object": large in body must be of type integer: "object"`, `large: Invalid value: "": large in body must be of type int64: ""`},
		{"{share: false}", `share: Invalid value: "boolean": share in body must be of type number: "boolean"`, `share: Invalid value: "": share in body must be of type double: ""`},
		{"{small: five}", `small: Invalid value: "string": small in body must be of type integer: "string"`, `small: Invalid value: "string": small in body must be of type integer: "string"`},
		{"{day: 5}", `day: Invalid value: "int64": day in body must be of type date: "int64"`, `day: Invalid value: "integer": day in body must be of type boolean: "integer"`},
		{"{small: 5, large: 5, share: 0.5, day: true}", "", ""},
	} {
		wantByRelease(t, typed, c.obj, c.before, c.from)
	}
}

func TestValidateStatus(t *testing.T) {
	v := version(t, `{type: object, properties: {spec: {type: object, properties: {num: {type: integer, minimum: 1}}}, status: {type: object, properties: {num: {type: integer, minimum: 1}, all: {type: integer}}}}}`)
	path := ".status.sel"
	v.Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.num", StatusReplicasPath: ".status.all", LabelSelectorPath: &path,
	}}
	s, err := structural.New(v, false, release.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ obj, old, want string }{
		{"{spec: {num: 0}, status: {num: 1}}", "{spec: {num: 0}}", ""},
		{"{status: {num: 0}}", "{status: {num: 0}}", "status.num: Invalid value: 0: num in body should be greater than or equal to 1"},
		{"{spec: {num: -1}, status: {all: -1}}", "{}", ".status.all: Invalid value: -1: should be a non-negative integer"},
		{"{status: {all: 2147483648}}", "{}", ".status.all: Invalid value: 2147483648: should be less than or equal to 2147483647"},
		{"{status: {sel: 1}}", "{}", `.status.sel: Invalid value: "": .status.sel accessor error: 1 is of the type int64, expected string`},
	} {
		var got []string
		for _, err := range s.ValidateStatus(context.Background(), nil, object(t, c.obj), object(t, c.old)) {
			got = append(got, status.Text(release.Default, err))
		}
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.obj, got, c.want)
		}
	}
}

func TestTypeConverter(t *testing.T) {
	s := schema(t, ruled)
	gvk := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	convert, err := s.TypeConverter(gvk)
	if err != nil {
		t.Fatal(err)
	}
	typed := func(text string) *typed.TypedValue {
		obj := object(t, text)
		obj["apiVersion"], obj["kind"] = "example.com/v1", "Widget"
		v, err := convert.ObjectToTyped(&unstructured.Unstructured{Object: obj})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return v
	}
	a := typed("{metadata: {labels: {a: b}, finalizers: [x]}, spec: {tags: [p], items: [{k: a, v: one}], pod: {apiVersion: v1, kind: P, metadata: {labels: {c: d}}}}}")
	b := typed("{metadata: {labels: {e: f}, finalizers: [z]}, spec: {tags: [q], items: [{k: b}, {k: a, v: two}], pod: {apiVersion: v1, kind: P, metadata: {labels: {g: h}}}}}")
	merged, err := a.Merge(b)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"finalizers":["x","z"],"labels":{"a":"b","e":"f"}},"spec":{"items":[{"k":"b"},{"k":"a","v":"two"}],"pod":{"apiVersion":"v1","kind":"P","metadata":{"labels":{"c":"d","g":"h"}}},"tags":["p","q"]}}`
	if got := text(t, merged.AsValue().Unstructured()); got != want {
		t.Errorf("merged\n got %s\nwant %s", got, want)
	}
	if _, err := convert.ObjectToTyped(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"what": "is this"},
	}}); err == nil || !strings.Contains(err.Error(), ".spec.what: field not declared in schema") {
		t.Errorf("an unknown field: %v", err)
	}
}

// TestManyMistakes holds Validate to a time that grows with the size of its input, not with its square.
func TestManyMistakes(t *testing.T) {
	s := schema(t, `{type: object, properties: {list: {type: array, items: {type: object, properties: {a: {type: integer}}}}, either: {type: array, items: {type: integer}, anyOf: [{items: {minimum: 5}}, {items: {maximum: -5}}]}}}`)
	list := func(item any) []any {
		all := make([]any, 20_000)
		for i := range all {
			all[i] = item
		}
		return all
	}
	for name, obj := range map[string]map[string]any{
		"list":         {"list": list(map[string]any{"a": "x"})},
		"alternatives": {"either": list(int64(0))},
		"one of both":  {"either": list(int64(-9)), "list": list("x")},
	} {
		errs := s.Validate(t.Context(), nil, obj, nil)
		if len(errs) == 0 || len(errs) > 500 {
			t.Errorf("%s: %d errors", name, len(errs))
		}
		errs = s.Validate(t.Context(), nil, obj, map[string]any{"list": list("y")})
		if len(errs) == 0 || len(errs) > 500 {
			t.Errorf("%s: %d errors of an update", name, len(errs))
		}
	}
	errs := s.Validate(t.Context(), nil, map[string]any{"either": list(int64(0))}, nil)
	if got, want := errs.ToAggregate().Error(), `<nil>: Invalid value: "": "either" must validate at least one schema (anyOf)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
