#!/bin/sh
# k8s.io/apiextensions-apiserver v0.37.2 with k8s.io/apiserver v0.37.2, the rules (x-kubernetes-validations) of
# definitions of custom resources.
#
# Seen, 1: a list with x-kubernetes-list-type: map is not equal to itself if a key has a name that CEL spells in another
# way (namespace is one of its reserved words; cluster-id) and two elements differ in that key alone: == looks keys up
# under the escaped name, "__namespace__", which no element has, and so takes all elements for one.
# Expected: a list that did not change is equal to what it was.
# Who is hurt: authors of "self.refs == oldSelf.refs" for references by namespace and name: as soon as the same name is
# used in two namespaces, each update of the object is refused, of whatever field.
#
# Seen, 2: of two objects with x-kubernetes-preserve-unknown-fields, fields that the schema does not name are compared
# only if both have them: {"x": 1} == {"y": 2}, while {"x": 1} differs from {"x": 2} and from {"x": 1, "y": 2}.
# Expected: objects with different fields differ.
# Who is hurt: rules that compare free-form settings with each other: a renamed key is no change.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

func equal(items, a, b string) bool {
	text := `{"type":"object","properties":{"pair":{"type":"array","items":` + items + `}},"x-kubernetes-validations":[{"rule":"self.pair[0] == self.pair[1]"}]}`
	var published apiextensionsv1.JSONSchemaProps
	must(json.Unmarshal([]byte(text), &published))
	var internal apiextensions.JSONSchemaProps
	must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&published, &internal, nil))
	structural, err := schema.NewStructural(&internal)
	must(err)
	var object map[string]any
	must(json.Unmarshal([]byte(`{"pair":[`+a+`,`+b+`]}`), &object))
	errs, _ := cel.NewValidator(structural, false, celconfig.PerCallLimit).
		Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		if err.Detail != "failed rule: self.pair[0] == self.pair[1]" {
			panic(err)
		}
	}
	return len(errs) == 0
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	for _, key := range []string{"zone", "namespace", "cluster-id"} {
		list := fmt.Sprintf(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["%s","name"],
			"items":{"type":"object","properties":{"%s":{"type":"string"},"name":{"type":"string"}}}}`, key, key)
		for _, names := range [][2]string{{"db", "cache"}, {"db", "db"}} {
			value := fmt.Sprintf(`[{"%s":"a","name":"%s"},{"%s":"b","name":"%s"}]`, key, names[0], key, names[1])
			fmt.Printf("%s is equal to itself: %v\n", value, equal(list, value, value))
		}
	}
	open := `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	for _, pair := range [][2]string{{`{"x":1}`, `{"x":2}`}, {`{"x":1}`, `{"x":1,"y":2}`}, {`{"x":1}`, `{"y":2}`}} {
		fmt.Printf("%s is equal to %s: %v\n", pair[0], pair[1], equal(open, pair[0], pair[1]))
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
[{"zone":"a","name":"db"},{"zone":"b","name":"cache"}] is equal to itself: true
[{"zone":"a","name":"db"},{"zone":"b","name":"db"}] is equal to itself: true
[{"namespace":"a","name":"db"},{"namespace":"b","name":"cache"}] is equal to itself: true
[{"namespace":"a","name":"db"},{"namespace":"b","name":"db"}] is equal to itself: false
[{"cluster-id":"a","name":"db"},{"cluster-id":"b","name":"cache"}] is equal to itself: true
[{"cluster-id":"a","name":"db"},{"cluster-id":"b","name":"db"}] is equal to itself: false
{"x":1} is equal to {"x":2}: false
{"x":1} is equal to {"x":1,"y":2}: false
{"x":1} is equal to {"y":2}: true
EOF
diff want out
