#!/bin/sh
# helm.sh/helm/v3 v3.22.0 (strvals, the parser of helm --set).
#
# Seen: --set knows the integers and the booleans, but no fractions: a=1 is a number, a=1.5
# and a=1e3 are strings, +5 is the number 5, and the first integer above 2^63-1 turns into
# a string again. In values.yaml, which --set overrides, 1.5 is a number.
# Expected: the same type as in values.yaml, or text for every number.
# Who is hurt: charts with a ratio, a sampling rate or a threshold. toYaml now quotes the
# value, and a custom resource with "type: number" is refused; a template with
# "gt .Values.ratio 0.5" ends with "incompatible types for comparison". The chart works
# for whoever tries it with 1.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, v := range []string{"1", "1.5", "-5", "-0.5", "1e3", "+5", "9223372036854775807", "9223372036854775808"} {
		set, err := strvals.Parse("a=" + v)
		if err != nil {
			panic(err)
		}
		file := map[string]any{}
		if err := yaml.Unmarshal([]byte("a: "+v), &file); err != nil {
			panic(err)
		}
		fmt.Printf("%s: --set gives %T, values.yaml gives %T\n", v, set["a"], file["a"])
	}
}
EOF
go mod init finding 2>/dev/null
go get helm.sh/helm/v3@v3.22.0 sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
1: --set gives int64, values.yaml gives float64
1.5: --set gives string, values.yaml gives float64
-5: --set gives int64, values.yaml gives float64
-0.5: --set gives string, values.yaml gives float64
1e3: --set gives string, values.yaml gives float64
+5: --set gives int64, values.yaml gives float64
9223372036854775807: --set gives int64, values.yaml gives float64
9223372036854775808: --set gives string, values.yaml gives float64
EOF
diff want out
