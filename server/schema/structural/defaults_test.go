package structural

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/release"
)

// FuzzDefaults holds the check of defaults to the library's.
func FuzzDefaults(f *testing.F) {
	for _, s := range []string{
		`{"type":"object"}`,
		`{"type":"object","default":{"a":1},"properties":{"b":{"type":"string","default":1,"maxLength":2}}}`,
		`{"type":"object","properties":{"o":{"type":"object","default":{"a":"x","b":2},"properties":{"a":{"type":"string","default":"y"}}},"l":{"type":"array","default":[1,"a"],"items":{"type":"integer","default":0,"minimum":1}}}}`,
		`{"type":"object","properties":{"r":{"type":"object","x-kubernetes-embedded-resource":true,"default":{"kind":"A","metadata":{"name":"!","odd":1}},"properties":{"kind":{"type":"string","default":"B C"},"metadata":{"type":"object","properties":{"name":{"type":"string","default":"Upper_Case"}}}}}}}`,
		`{"type":"object","properties":{"o":{"type":"object","default":{"n":1},"x-kubernetes-validations":[{"rule":"self.n > oldSelf.n"},{"rule":"self.m > 1"}],"properties":{"n":{"type":"integer","default":5,"x-kubernetes-validations":[{"rule":"self < 3","message":"small"},{"rule":"self == oldSelf"},{"rule":"oldSelf.hasValue()","optionalOldSelf":true}]},"m":{"type":"integer","default":0}}}}}`,
		`{"type":"object","properties":{"o":{"type":"object","default":{},"x-kubernetes-validations":[{"rule":"self.no"}],"properties":{"n":{"type":"integer"}}}}}`,
		`{"type":"object","properties":{"m":{"type":"object","default":{"a":{"b":1}},"additionalProperties":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[{"rule":"false"}]}}}}`,
		`{"type":"object","properties":{"o":{"x-kubernetes-preserve-unknown-fields":true,"default":[],"properties":{"a":{"type":"integer","default":0,"x-kubernetes-validations":[{"rule":"self > 0"}]}}}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		s := readSchema(schema)
		if s == nil {
			return
		}
		for _, pruned := range []bool{false, true} {
			p := field.NewPath("x")
			want, wantErr := defaulting.ValidateDefaults(t.Context(), p, s.tree.DeepCopy(), true, pruned)
			got, err := ValidateDefaults(t.Context(), p, s.tree.DeepCopy(), pruned, release.Default)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%s: %v, the library %v", schema, err, wantErr)
			}
			for _, e := range want { // in the text of releases before 1.34
				if e.Type == field.ErrorTypeRequired && e.Detail == "" && (strings.HasSuffix(e.Field, "apiVersion") || strings.HasSuffix(e.Field, "kind")) {
					e.Detail = "must not be empty"
				}
			}
			if diff := cmp.Diff(fail(want, nil), fail(got, nil)); diff != "" {
				t.Errorf("%s:\n%s", schema, diff)
			}
		}
	})
}
