#!/bin/sh
# github.com/google/go-jsonnet v0.22.0 with k8s.io/apimachinery v0.36.2, resource.Quantity.
#
# Seen: jsonnet writes a number that is not whole with seventeen digits: 0.1 becomes 0.10000000000000001. A quantity keeps nine
# digits after the point and rounds up, so `cpu: 0.1` is 100000001n. Counted in thousandths, as the scheduler and the kubelet
# do, that is 101m. 0.3 and 0.7 come out as 0.29999999999999999 and 0.69999999999999996, and rounding up makes them right.
# Expected: the shortest digits that name this number, as Go, JavaScript and Python write it into JSON.
# Who is hurt: manifests made with jsonnet (Tanka, the mixins of Prometheus and Grafana) that give cores as numbers: a quota of
# 2200m has no room for two Pods of 1.1, and each comparison with what another tool wrote finds a difference.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/go-jsonnet"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	text, err := jsonnet.MakeVM().EvaluateAnonymousSnippet("a.jsonnet", "[0.1, 0.2, 0.3, 0.5, 0.7, 1.1, 2.2]")
	if err != nil {
		panic(err)
	}
	var numbers []json.RawMessage
	if err := json.Unmarshal([]byte(text), &numbers); err != nil {
		panic(err)
	}
	for _, number := range numbers {
		var quantity resource.Quantity
		if err := json.Unmarshal(number, &quantity); err != nil {
			panic(err)
		}
		fmt.Printf("%-20s is %s, %dm\n", number, quantity.String(), quantity.MilliValue())
	}
	quota, cpu := resource.MustParse("2200m"), resource.MustParse(string(numbers[5]))
	cpu.Add(cpu)
	fmt.Println("two of 1.1 within 2200m:", cpu.Cmp(quota) <= 0)
}
EOF
go mod init finding 2>/dev/null
go get github.com/google/go-jsonnet@v0.22.0 k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
0.10000000000000001  is 100000001n, 101m
0.20000000000000001  is 200000001n, 201m
0.29999999999999999  is 300m, 300m
0.5                  is 500m, 500m
0.69999999999999996  is 700m, 700m
1.1000000000000001   is 1100000001n, 1101m
2.2000000000000002   is 2200000001n, 2201m
two of 1.1 within 2200m: false
EOF
diff want out
