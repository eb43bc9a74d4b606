#!/bin/sh
# kubernetes-models 5.1.0 (npm), whose objects check themselves with validate(); k8s.io/apimachinery v0.36.2.
#
# Seen: validate() takes all SI prefixes for suffixes of a quantity: 1h, 1d, 1da, 1c, 1f, 1a, 1Z and 1Y, and the exponent
# 1e1.5, none of which the API reads; and a time with a blank for the T. It refuses base64 in lines, as `base64` of
# coreutils prints it and as the API reads it.
# Expected: what the API reads; its comment names the grammar of apimachinery as the source.
# Who is hurt: manifests in TypeScript, where validate() is the check before the commit: 1h, 7d of a retention that slipped
# into a size, or 10c, pass it and fail at the server; the Secret with a certificate in lines fails the check, and works.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	check := func(kind, text string, err error) {
		result := "refused"
		if err == nil {
			result = "read"
		}
		fmt.Printf("the API: %s %s: %s\n", kind, text, result)
	}
	for _, text := range []string{"1Gi", "1h", "1d", "1da", "1c", "1Y", "1e1.5"} {
		_, err := resource.ParseQuantity(text)
		check("quantity", text, err)
	}
	check("time", "2024-01-01 00:00:00Z", json.Unmarshal([]byte(`"2024-01-01 00:00:00Z"`), &metav1.Time{}))
	check("bytes", `YWJj\nZGVm`, json.Unmarshal([]byte(`"YWJj\nZGVm"`), &[]byte{}))
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . | tee out
npm install --silent --no-save --prefix . kubernetes-models@5.1.0 >/dev/null
cat >main.mjs <<'EOF'
import { Pod } from 'kubernetes-models/v1/Pod'
import { Secret } from 'kubernetes-models/v1/Secret'

const check = (kind, text, object) => {
  let result = 'read'
  try {
    object.validate()
  } catch {
    result = 'refused'
  }
  console.log(`validate(): ${kind} ${text}: ${result}`)
}
for (const memory of ['1Gi', '1h', '1d', '1da', '1c', '1Y', '1e1.5'])
  check('quantity', memory, new Pod({ spec: { containers: [{ name: 'a', resources: { limits: { memory } } }] } }))
check('time', '2024-01-01 00:00:00Z', new Secret({ metadata: { creationTimestamp: '2024-01-01 00:00:00Z' } }))
check('bytes', 'YWJj\\nZGVm', new Secret({ data: { a: 'YWJj\nZGVm' } }))
EOF
node main.mjs | tee -a out
cat >want <<'EOF'
the API: quantity 1Gi: read
the API: quantity 1h: refused
the API: quantity 1d: refused
the API: quantity 1da: refused
the API: quantity 1c: refused
the API: quantity 1Y: refused
the API: quantity 1e1.5: refused
the API: time 2024-01-01 00:00:00Z: refused
the API: bytes YWJj\nZGVm: read
validate(): quantity 1Gi: read
validate(): quantity 1h: read
validate(): quantity 1d: read
validate(): quantity 1da: read
validate(): quantity 1c: read
validate(): quantity 1Y: read
validate(): quantity 1e1.5: read
validate(): time 2024-01-01 00:00:00Z: read
validate(): bytes YWJj\nZGVm: refused
EOF
diff want out
