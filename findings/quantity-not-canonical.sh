#!/bin/sh
# k8s.io/apimachinery v0.32.13 with k8s.io/api v0.32.13 (resource.Quantity).
#
# Seen: the canonical form depends on how a quantity is spelled, not on its value. "1000m",
# "5.0" and "5000000" are rewritten ("1", "5", "5M"), while "05", "+5", "5." and "1e03" pass
# through reading and writing as they are, and become "5" and "1e3" only after arithmetic.
# Expected: "before serializing, Quantity will be put in canonical form" (comment of the
# type): one text for one value and format.
# Who is hurt: tools that compare specs as text or by hash (GitOps diffs, template hashes):
# some spellings give an endless difference and others none, and an object that went through
# a controller which adds zero differs from the one that did not.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, s := range []string{"1000m", "5.0", "5000000", "05", "+5", "5.", "+1Gi", "1e03"} {
		var list corev1.ResourceList
		if err := json.Unmarshal([]byte(`{"cpu":"`+s+`"}`), &list); err != nil {
			panic(err)
		}
		text, _ := json.Marshal(list)
		q := list["cpu"]
		q.Add(resource.Quantity{})
		fmt.Printf("%s: read and written %s, after adding zero %s\n", s, text, q.String())
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/api@v0.32.13 k8s.io/apimachinery@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
1000m: read and written {"cpu":"1"}, after adding zero 1
5.0: read and written {"cpu":"5"}, after adding zero 5
5000000: read and written {"cpu":"5M"}, after adding zero 5M
05: read and written {"cpu":"05"}, after adding zero 5
+5: read and written {"cpu":"+5"}, after adding zero 5
5.: read and written {"cpu":"5."}, after adding zero 5
+1Gi: read and written {"cpu":"+1Gi"}, after adding zero 1Gi
1e03: read and written {"cpu":"1e03"}, after adding zero 1e3
EOF
diff want out
