package structural_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema/structural"
)

// typical returns a schema as operators have them, with rules if asked for.
func typical(rules bool) string {
	var b strings.Builder
	b.WriteString("{type: object, properties: {spec: {type: object, required: [name, port], properties: {" +
		"name: {type: string, maxLength: 63, pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$'}, port: {type: integer, minimum: 1, maximum: 65535}, " +
		"mode: {type: string, enum: [Fast, Slow], default: Fast}, target: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, " +
		"labels: {type: object, additionalProperties: {type: string}}, " +
		"items: {type: array, maxItems: 50, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {" +
		"name: {type: string, maxLength: 63}, value: {type: string, maxLength: 100}, weight: {type: integer, default: 1}, args: {type: array, maxItems: 10, items: {type: string, maxLength: 50}}}")
	if rules {
		b.WriteString(", x-kubernetes-validations: [{rule: 'self.weight >= 0', message: weight}]")
	}
	b.WriteString("}}}")
	if rules {
		b.WriteString(", x-kubernetes-validations: [{rule: 'self.name == oldSelf.name', message: name is immutable}, {rule: 'self.items.all(i, size(i.value) > 0)'}]")
	}
	b.WriteString("}, status: {type: object, properties: {phase: {type: string}, conditions: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], items: {type: object, required: [type, status], properties: {" +
		"type: {type: string}, status: {type: string, enum: ['True', 'False', Unknown]}, reason: {type: string}, message: {type: string}, lastTransitionTime: {type: string, format: date-time}}}}}}}}")
	return b.String()
}

// typicalObject returns an object of it, of about 2 KB.
func typicalObject(b *testing.B) map[string]any {
	var items strings.Builder
	for i := range 12 {
		fmt.Fprintf(&items, "{name: item-%d, value: some value of this item, weight: %d, args: [--first=a, --second=b]},", i, i)
	}
	return object(b, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: typical, namespace: default, uid: 8ba3e0c4-6a94-4c5f-8d0f-0e5a0c2b7a11, resourceVersion: "12345", generation: 3,
  creationTimestamp: "2026-01-02T03:04:05Z", labels: {app: typical, tier: backend}, annotations: {note: "a few words on this"},
  managedFields: [{manager: kubectl, operation: Update, apiVersion: example.com/v1, time: "2026-01-02T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {".": {}, "f:name": {}, "f:port": {}, "f:items": {".": {}, 'k:{"name":"item-0"}': {".": {}, "f:name": {}}}}}}]},
  spec: {name: typical, port: 8080, mode: Slow, target: http, labels: {a: b, c: d}, items: [`+items.String()+`]},
  status: {phase: Ready, conditions: [{type: Ready, status: "True", reason: AllGood, message: everything is as it should be, lastTransitionTime: "2026-01-02T03:04:05Z"}]}}`)
}

// BenchmarkWrite measures the cost of a schema in an update of an object of 2 KB.
func BenchmarkWrite(b *testing.B) {
	obj := typicalObject(b)
	for _, c := range []struct {
		name  string
		rules bool
	}{{"plain", false}, {"rules", true}} {
		s := schema(b, typical(c.rules))
		b.Run("coerce/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if unknown, err := s.Coerce(obj); err != nil || len(unknown) > 0 {
					b.Fatal(unknown, err)
				}
				s.Default(obj)
			}
		})
		old := runtime.DeepCopyJSON(obj)
		old["spec"].(map[string]any)["port"] = int64(80)
		b.Run("update/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if errs := s.Validate(b.Context(), nil, obj, old); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkNew measures the cost of a schema before and at the first write.
func BenchmarkNew(b *testing.B) {
	obj := typicalObject(b)
	v := version(b, typical(true))
	for _, first := range []string{"only", "and first write"} {
		b.Run(first, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := structural.New(v, false, release.Default)
				if err != nil {
					b.Fatal(err)
				}
				if first != "only" {
					if errs := s.Validate(b.Context(), nil, obj, nil); len(errs) > 0 {
						b.Fatal(errs)
					}
				}
			}
		})
	}
}
