#!/bin/sh
# k8s.io/kube-openapi v0.0.0-20260317180543-43fb72c5454a (validation/strfmt, which checks the formats of custom
# resources), k8s.io/apimachinery v0.36.2.
#
# Seen: a schema's format accepts text that the Go type of the same meaning cannot read. "duration" accepts 1d,
# 2 weeks, P1D, and 1 h, which metav1.Duration and CEL's duration() refuse; "date-time" accepts a small t and z,
# which metav1.Time refuses. And "byte" refuses the empty text, which is how an empty []byte is written.
# Expected: a format that admits an object admits what its controller can read.
# Who is hurt: authors of definitions who state formats. One object that passes with such a value makes each
# typed list of the kind fail as a whole, so the controller's informer never syncs.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

type list struct {
	Items []struct {
		After metav1.Duration `json:"after"`
		At    metav1.Time     `json:"at"`
	} `json:"items"`
}

func main() {
	for _, c := range []struct{ format, member, text string }{
		{"duration", "after", "24h"}, {"duration", "after", "1d"}, {"duration", "after", "2 weeks"},
		{"duration", "after", "P1D"}, {"duration", "after", "1 h"},
		{"date-time", "at", "2024-01-01T00:00:00Z"}, {"date-time", "at", "2024-01-01t00:00:00z"},
	} {
		body := fmt.Sprintf(`{"items":[{"after":"1h"},{%q:%q},{"after":"2h"}]}`, c.member, c.text)
		var typed list
		err := json.Unmarshal([]byte(body), &typed)
		fmt.Printf("%s %q: admitted %t, list read %t\n", c.format, c.text, strfmt.Default.Validates(c.format, c.text), err == nil)
	}
	empty, _ := json.Marshal([]byte{})
	fmt.Printf("byte %s: admitted %t\n", empty, strfmt.Default.Validates("byte", ""))
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/kube-openapi@v0.0.0-20260317180543-43fb72c5454a k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
duration "24h": admitted true, list read true
duration "1d": admitted true, list read false
duration "2 weeks": admitted true, list read false
duration "P1D": admitted true, list read false
duration "1 h": admitted true, list read false
date-time "2024-01-01T00:00:00Z": admitted true, list read true
date-time "2024-01-01t00:00:00z": admitted true, list read false
byte "": admitted false
EOF
diff want out
