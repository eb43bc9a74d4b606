#!/bin/sh
# sigs.k8s.io/controller-tools v0.23.0 (controller-gen, which writes the definitions of most operators),
# k8s.io/apiextensions-apiserver and k8s.io/api v0.37.2.
#
# Seen: the schema that controller-gen writes for a resource.Quantity is not what a Quantity reads. It refuses the
# number 0.5, which a Pod takes for its cpu, and accepts "1e1.5", which the Go type refuses.
# Expected: one rule for quantities; the documentation of Pods has 0.5 as an example of cpu.
# Who is hurt: users who move resources from a Pod to a custom resource, where 0.5 must have quotes; and the operator,
# whose typed list of the kind fails as a whole as long as one object holds a value that only the schema accepts.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir api
cat >api/types.go <<'EOF'
// +groupName=example.com
package api

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec `json:"spec"`
}

type Spec struct {
	CPU resource.Quantity `json:"cpu"`
}
EOF
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"finding/api"
)

func result(err error) string {
	if err != nil {
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
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		panic(err)
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		panic(err)
	}
	for _, cpu := range []string{`1`, `"0.5"`, `0.5`, `"1e1"`, `"1e1.5"`} {
		var object map[string]any
		if err := kubejson.Unmarshal([]byte(`{"spec":{"cpu":`+cpu+`}}`), &object); err != nil {
			panic(err)
		}
		var pod corev1.ResourceRequirements
		var job api.Spec
		fmt.Printf("cpu: %s: in a Pod %s, by the definition %s, by the operator %s\n", cpu,
			result(json.Unmarshal([]byte(`{"limits":{"cpu":`+cpu+`}}`), &pod)),
			result(validation.ValidateCustomResource(nil, object, validator).ToAggregate()),
			result(json.Unmarshal([]byte(`{"cpu":`+cpu+`}`), &job)))
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apiextensions-apiserver@v0.37.2 k8s.io/api@v0.37.2 2>/dev/null
go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=./api output:crd:dir=crd
go run -mod=mod . | tee out
cat >want <<'EOF'
cpu: 1: in a Pod accepted, by the definition accepted, by the operator accepted
cpu: "0.5": in a Pod accepted, by the definition accepted, by the operator accepted
cpu: 0.5: in a Pod accepted, by the definition refused, by the operator accepted
cpu: "1e1": in a Pod accepted, by the definition accepted, by the operator accepted
cpu: "1e1.5": in a Pod refused, by the definition accepted, by the operator refused
EOF
diff want out
