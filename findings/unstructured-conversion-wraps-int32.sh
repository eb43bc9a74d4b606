#!/bin/sh
# k8s.io/apimachinery v0.32.13 with k8s.io/api v0.32.13.
#
# Seen: DefaultUnstructuredConverter.FromUnstructured puts an int64 that does not fit into
# an int32 field by dropping the upper 32 bits, without an error: 4294967297 replicas
# become 1, and 3e10 (a float64) becomes -64771072. In the same function a float with a
# fraction (1.9) is refused, and decoding the same object as JSON refuses all three.
# Expected: "value out of range", as from JSON.
# Who is hurt: controllers and admission code that read with the dynamic client or a cache
# of unstructured objects and convert to typed ones: they act on a number nobody wrote.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	for _, n := range []any{int64(4294967297), float64(3e10), float64(1.9)} {
		object := map[string]any{"spec": map[string]any{"replicas": n}}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &d); err != nil {
			fmt.Printf("%T %v: FromUnstructured: %v\n", n, n, err)
		} else {
			fmt.Printf("%T %v: FromUnstructured: %d replicas\n", n, n, *d.Spec.Replicas)
		}
		text, _ := json.Marshal(object)
		fmt.Printf("%T %v: as JSON refused: %v\n", n, n, json.Unmarshal(text, &appsv1.Deployment{}) != nil)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/api@v0.32.13 k8s.io/apimachinery@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
int64 4294967297: FromUnstructured: 1 replicas
int64 4294967297: as JSON refused: true
float64 3e+10: FromUnstructured: -64771072 replicas
float64 3e+10: as JSON refused: true
float64 1.9: FromUnstructured: cannot convert float64 to int32
float64 1.9: as JSON refused: true
EOF
diff want out
