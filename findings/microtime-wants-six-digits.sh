#!/bin/sh
# k8s.io/apimachinery v0.32.13 (metav1.MicroTime: renewTime and acquireTime of a Lease,
# eventTime of an Event).
#
# Seen: MicroTime reads only times with exactly six digits after the point. It refuses
# "2024-01-01T00:00:00Z", ".5Z", the three digits of JavaScript's Date.toISOString and the
# nine of others, though all are RFC 3339. metav1.Time reads each of them, with any number
# of digits, and even a comma for the point.
# Expected: any RFC 3339 time, rounded; the OpenAPI schema says "format: date-time" for both.
# Who is hurt: leader election outside Go. A client in JavaScript fails at once; one in
# Python, whose isoformat leaves the fraction out when it is zero, fails once in a million
# renewals.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for _, fraction := range []string{"", ".5", ".123", ".123456", ".123456789", ",5"} {
		text := []byte(`"2024-01-01T00:00:00` + fraction + `Z"`)
		fmt.Printf("%-32s Time reads it: %-5v MicroTime reads it: %v\n", text,
			json.Unmarshal(text, &metav1.Time{}) == nil, json.Unmarshal(text, &metav1.MicroTime{}) == nil)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
"2024-01-01T00:00:00Z"           Time reads it: true  MicroTime reads it: false
"2024-01-01T00:00:00.5Z"         Time reads it: true  MicroTime reads it: false
"2024-01-01T00:00:00.123Z"       Time reads it: true  MicroTime reads it: false
"2024-01-01T00:00:00.123456Z"    Time reads it: true  MicroTime reads it: true
"2024-01-01T00:00:00.123456789Z" Time reads it: true  MicroTime reads it: false
"2024-01-01T00:00:00,5Z"         Time reads it: true  MicroTime reads it: false
EOF
diff want out
