package structural

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rowlock/rowlock/server/release"
)

// readSchema makes the schema of a version from JSON; nil if no definition has such.
func readSchema(text []byte) *Schema {
	v := &apiextensionsv1.CustomResourceDefinitionVersion{Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}}
	if json.Unmarshal(text, v.Schema.OpenAPIV3Schema) != nil {
		return nil
	}
	s, err := New(v, false, release.Default)
	if err != nil || s.tree == nil || len(structuralschema.ValidateStructural(nil, s.tree)) > 0 {
		return nil
	}
	return s
}

// FuzzPrecheck compares the checks with the library: where they report nothing to
// do, it does nothing.
func FuzzPrecheck(f *testing.F) {
	for _, s := range []string{
		`{"type":"object"}`,
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object","properties":{"b":{"type":"string","default":"x"}}}}}`,
		`{"type":"object","properties":{"a":{"type":"string","default":"x","nullable":true},"b":{"type":"string"},"m":{"type":"object","additionalProperties":{"type":"object","properties":{"c":{"type":"integer","default":1}}}}}}`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"c":{"type":"integer","default":1}}}},"f":{"type":"object","additionalProperties":true},"p":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object"}}}}`,
		`{"type":"object","properties":{"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},"m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}}}`,
		`{"type":"object","properties":{"r":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"a":{"type":"string"}}}}}`,
	} {
		for _, v := range []string{
			`{}`, `{"kind":1,"apiVersion":null,"metadata":{"name":"a"}}`, `{"a":null}`, `{"a":"x","b":null}`, `{"a":{"c":1}}`, `{"m":{"x":{},"y":null}}`, `{"m":{"x":{"c":1}}}`,
			`{"l":[{}]}`, `{"l":[null,{"c":1}]}`, `{"f":{"a":1}}`, `{"f":{"a":{"b":1}}}`, `{"p":[{"a":1}]}`, `{"s":["a","b","a"]}`, `{"s":["a","b"]}`, `{"m":[{"k":"a"},{"k":"b"}]}`,
			`{"m":[{"k":"a"},{"k":"a"}]}`, `{"m":[{},{}]}`, `{"m":[1]}`, `{"s":[1,1.0]}`, `{"r":{"kind":"A","apiVersion":"v1","metadata":{"name":"a","odd":1},"b":2}}`,
		} {
			f.Add([]byte(s), []byte(v))
		}
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s := readSchema(schema)
		var obj map[string]any
		if s == nil || utiljson.Unmarshal(value, &obj) != nil || obj == nil {
			return
		}
		slow := *s
		slow.embedded = true // it asks the library
		want, before, settled := runtime.DeepCopyJSON(obj), runtime.DeepCopyJSON(obj), s.Settled(obj)
		lost, err := s.Coerce(obj)
		lostSlowly, errSlowly := slow.Coerce(want)
		if (err == nil) != (errSlowly == nil) || len(lost) != len(lostSlowly) {
			t.Fatalf("%s, %s: lost %v (%v), the library %v (%v)", schema, value, lost, err, lostSlowly, errSlowly)
		}
		if err != nil {
			return
		}
		s.Default(obj)
		if s.precheck.convertIntegers(before); settled && !sameValues(before, obj) {
			t.Errorf("%s, %s: settled, but it becomes %v", schema, value, obj)
		}
		defaulting.Default(want, s.tree)
		if !reflect.DeepEqual(obj, want) {
			t.Errorf("%s, %s: made %v, the library %v", schema, value, obj, want)
		}
		if s.precheck.isUnique(obj) {
			if errs := listtype.ValidateListSetsAndMaps(nil, s.tree, obj); len(errs) > 0 {
				t.Errorf("%s, %s: %v", schema, value, errs)
			}
		}
	})
}

// sameValues compares the fields outside of the metadata.
func sameValues(a, b map[string]any) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, "metadata")
	delete(b, "metadata")
	return reflect.DeepEqual(a, b)
}

// FuzzMeta compares the fast path for metadata with reading and writing it.
func FuzzMeta(f *testing.F) {
	for _, m := range []string{
		`{}`, `{"name":"a","labels":{"a":"b"},"creationTimestamp":"2026-01-02T03:04:05Z"}`, `{"name":""}`, `{"creationTimestamp":null}`, `{"creationTimestamp":"2026-01-02T03:04:05.5Z"}`,
		`{"creationTimestamp":"0001-01-01T00:00:00Z"}`, `{"deletionTimestamp":"2026-02-30T00:00:00Z","deletionGracePeriodSeconds":1}`, `{"generation":0}`, `{"generation":1.0}`, `{"labels":{}}`, `{"labels":{"a":1}}`, `{"finalizers":["a",null]}`,
		`{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"b","controller":true}]}`, `{"ownerReferences":[{"kind":"A"}]}`, `{"uid":"a","odd":1}`,
		`{"managedFields":[{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{".":{}}}}]}`, `{"managedFields":[{}]}`, `{"managedFields":[{"fieldsV1":{"f:a":1}}]}`,
	} {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var m map[string]any
		if utiljson.Unmarshal(text, &m) != nil || m == nil || !canonicalMeta(m) {
			return
		}
		for _, c := range []struct {
			of      release.Version
			lenient bool
		}{{release.V132, false}, {release.V132, true}, {release.V133, false}, {release.V133, true}} {
			lenient := c.lenient
			fast := map[string]any{"metadata": runtime.DeepCopyJSON(m)}
			if unknown, err := coerceMeta(c.of, fast, true, lenient); err != nil || len(unknown) > 0 {
				t.Fatal(unknown, err)
			}
			slow := map[string]any{"metadata": runtime.DeepCopyJSON(m)}
			meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(slow, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
			if err != nil || len(unknown) > 0 {
				t.Fatalf("%s: %v, %v", text, unknown, err)
			}
			if lenient && meta.Generation == 0 {
				meta.Generation = 1
			}
			if err := objectmeta.SetObjectMeta(slow, meta); err != nil {
				t.Fatal(err)
			}
			if m := slow["metadata"].(map[string]any); m["creationTimestamp"] == nil && c.of == release.V132 {
				m["creationTimestamp"] = nil
			}
			if !reflect.DeepEqual(fast, slow) {
				t.Errorf("%s: %v, by the library %v", text, fast, slow)
			}
		}
	})
}
