#!/bin/sh
# k8s.io/apiextensions-apiserver v0.37.2 with k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad, which check custom
# resources against their definition.
#
# Seen: a bound with a fraction is cut to an integer if the value has none: minimum 0.5 admits 0 and refuses 0.0;
# exclusiveMaximum 1.5 refuses 1 and admits 1.0; multipleOf 0.5 refuses 1 ("must be > 0"), and 2.5 admits 4 and refuses 5.
# An enum does the reverse, the value is converted to the type of the member: [1, 2] admits 1.9, and for an
# int-or-string "a" admits 97, its code point.
# Expected: 0 is 0.0 in JSON and below 0.5; 1.9 is not in [1, 2]; 97 is not "a".
# Who is hurt: definitions with ratios, weights and steps of type number: bounds that hold for each value with a point
# fail for those that people write most, 0 and 1. And since 1.0 is stored as 1, an object that was accepted is refused
# when it is created again from a backup.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
)

func main() {
	for _, c := range []struct {
		schema string
		values []string
	}{
		{`{"type":"number","minimum":0.5}`, []string{"0", "0.0"}},
		{`{"type":"number","maximum":-0.5}`, []string{"0", "0.0"}},
		{`{"type":"number","maximum":1.5,"exclusiveMaximum":true}`, []string{"1", "1.0"}},
		{`{"type":"number","multipleOf":0.5}`, []string{"1", "1.0"}},
		{`{"type":"number","multipleOf":2.5}`, []string{"4", "4.0", "5", "5.0"}},
		{`{"type":"number","enum":[1,2]}`, []string{"1.9", "2.9", "3"}},
		{`{"x-kubernetes-int-or-string":true,"enum":["a"]}`, []string{"97", "98"}},
	} {
		var published apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal([]byte(c.schema), &published); err != nil {
			panic(err)
		}
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&published, &schema, nil); err != nil {
			panic(err)
		}
		validator, _, err := validation.NewSchemaValidator(&schema)
		if err != nil {
			panic(err)
		}
		fmt.Print(c.schema, ":")
		for _, text := range c.values {
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				panic(err)
			}
			result := "accepted"
			if errs := validation.ValidateCustomResource(nil, value, validator); len(errs) > 0 {
				result = "refused"
			}
			fmt.Print(" ", text, " ", result)
		}
		fmt.Println()
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
{"type":"number","minimum":0.5}: 0 accepted 0.0 refused
{"type":"number","maximum":-0.5}: 0 accepted 0.0 refused
{"type":"number","maximum":1.5,"exclusiveMaximum":true}: 1 refused 1.0 accepted
{"type":"number","multipleOf":0.5}: 1 refused 1.0 accepted
{"type":"number","multipleOf":2.5}: 4 accepted 4.0 refused 5 refused 5.0 accepted
{"type":"number","enum":[1,2]}: 1.9 accepted 2.9 accepted 3 refused
{"x-kubernetes-int-or-string":true,"enum":["a"]}: 97 accepted 98 refused
EOF
diff want out
