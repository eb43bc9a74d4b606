#!/bin/sh
# sigs.k8s.io/controller-tools v0.23.0 (controller-gen), k8s.io/apiextensions-apiserver v0.37.2.
#
# Seen: for Go types and markers that read naturally, the schema that controller-gen writes refuses what encoding/json writes for
# the type. `json:",string"` on an integer is not seen, so "5" is refused and 5, which the type cannot read, is accepted;
# Enum=15;16;17 on a string are numbers, so no value at all is accepted. And default=0400 is 400, which is 0620, where Go, YAML
# 1.1 and kubectl read 0400.
# Expected: an error of controller-gen, as it gives for floats, or the schema of what the type writes.
# Who is hurt: authors of operators: the tests of the Go types pass, and the first object is refused by the server; one that is accepted
# fails the operator's list; the file mode is wrong without an error.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir api
cat >api/types.go <<'EOF'
// +groupName=example.com
package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec `json:"spec"`
}

type Spec struct {
	Offset int64 `json:"offset,omitempty,string"`
	// +kubebuilder:validation:Enum=15;16;17
	Postgres string `json:"postgres,omitempty"`
	// +kubebuilder:default=0400
	Mode int32 `json:"mode,omitempty"`
}
EOF
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"finding/api"
)

func result(refused bool) string {
	if refused {
		return "refused"
	}
	return "accepted"
}

func main() {
	text, err := os.ReadFile("crd/example.com_jobs.yaml")
	if err != nil {
		panic(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		panic(err)
	}
	published := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, &schema, nil); err != nil {
		panic(err)
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		panic(err)
	}
	check := func(what string, spec []byte) {
		var object map[string]any
		if err := kubejson.Unmarshal([]byte(`{"spec":`+string(spec)+`}`), &object); err != nil {
			panic(err)
		}
		var read api.Spec
		fmt.Printf("%s %s: by the schema %s, by the type %s\n", what, spec,
			result(len(validation.ValidateCustomResource(nil, object, validator)) > 0), result(json.Unmarshal(spec, &read) != nil))
	}
	for _, spec := range []api.Spec{{Offset: 5}, {Postgres: "16"}} {
		data, err := json.Marshal(spec)
		if err != nil {
			panic(err)
		}
		check("Go writes", data)
	}
	check("others write", []byte(`{"offset":5}`))
	fmt.Printf("enum: %s, default of the mode: %s\n", published.Properties["spec"].Properties["postgres"].Enum,
		published.Properties["spec"].Properties["mode"].Default.Raw)
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=./api output:crd:dir=crd
go run -mod=mod . | tee out
cat >want <<'EOF'
Go writes {"offset":"5"}: by the schema refused, by the type accepted
Go writes {"postgres":"16"}: by the schema refused, by the type accepted
others write {"offset":5}: by the schema accepted, by the type refused
enum: [{15} {16} {17}], default of the mode: 400
EOF
diff want out
