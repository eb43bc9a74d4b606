#!/bin/sh
# k8s.io/apiserver v0.37.2, mutating admission policies (MutatingAdmissionPolicy).
#
# Seen: an integer above 2^53 in the value of a JSONPatch becomes a text: a policy that copies spec.nanos, 9007199254740993,
# to spec.copy writes "9007199254740993" there. A "test" of a field against itself fails for such a value, which
# drops the whole patch without an error. The same policy with an apply configuration writes the number.
# Expected: the number, as the object has it, or an error; the API's integers have 64 bits.
# Who is hurt: policies on custom resources with identifiers, sizes or times in nanoseconds: with a schema the write is
# refused for its type, without one the text is stored; and it begins when the values have grown.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

func main() {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 37)))
	if err != nil {
		panic(err)
	}
	compile := func(c cel.ExpressionAccessor) cel.MutatingEvaluator {
		return compiler.CompileMutatingEvaluator(c, cel.OptionalVariableDeclarations{HasPatchTypes: true}, environment.StoredExpressions)
	}
	copied := patch.NewJSONPatcher(compile(&patch.JSONPatchCondition{
		Expression: `[JSONPatch{op: "add", path: "/spec/copy", value: object.spec.nanos}]`,
	}))
	tested := patch.NewJSONPatcher(compile(&patch.JSONPatchCondition{
		Expression: `[JSONPatch{op: "test", path: "/spec/nanos", value: object.spec.nanos}, JSONPatch{op: "add", path: "/spec/copy", value: "tested"}]`,
	}))
	applied := patch.NewApplyConfigurationPatcher(compile(&patch.ApplyConfigurationCondition{
		Expression: `Object{spec: Object.spec{copy: object.spec.nanos}}`,
	}))
	for _, nanos := range []int64{9007199254740991, 9007199254740993} {
		for _, p := range []struct {
			name string
			patch.Patcher
		}{{"JSONPatch", copied}, {"JSONPatch with test", tested}, {"ApplyConfiguration", applied}} {
			gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Counter"}
			gvr := gvk.GroupVersion().WithResource("counters")
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"nanos": nanos}}}
			object.SetGroupVersionKind(gvk)
			attributes := admission.NewAttributesRecord(object, nil, gvk, "", "a", gvr, "", admission.Create, &metav1.CreateOptions{}, false, nil)
			result, err := p.Patch(context.Background(), patch.Request{
				MatchedResource: gvr,
				VersionedAttributes: &admission.VersionedAttributes{
					Attributes: attributes, VersionedKind: gvk,
					VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(nil),
				},
				ObjectInterfaces: admission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
				TypeConverter:    managedfields.NewDeducedTypeConverter(),
			}, celconfig.RuntimeCELCostBudget)
			if err != nil {
				panic(err)
			}
			spec, err := json.Marshal(result.(*unstructured.Unstructured).Object["spec"])
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s: %s\n", p.name, spec)
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apiserver@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
JSONPatch: {"copy":9007199254740991,"nanos":9007199254740991}
JSONPatch with test: {"copy":"tested","nanos":9007199254740991}
ApplyConfiguration: {"copy":9007199254740991,"nanos":9007199254740991}
JSONPatch: {"copy":"9007199254740993","nanos":9007199254740993}
JSONPatch with test: {"nanos":9007199254740993}
ApplyConfiguration: {"copy":9007199254740993,"nanos":9007199254740993}
EOF
diff want out
