#!/bin/sh
# k8s.io/apimachinery v0.32.13 (metav1.Time, all timestamps in seconds of the API).
#
# Seen: metav1.Time accepts "9999-12-31T23:59:59-01:00", a valid RFC 3339 time, turns it
# into UTC and writes "10000-01-01T00:59:59Z". Its own UnmarshalJSON refuses that text, for
# RFC 3339 has four digits for the year. Go's time.Time returns an error from MarshalJSON
# for such a value; metav1.Time has no such check.
# Expected: a refusal on the way in, or the text kept as it was written.
# Who is hurt: people who mark "never" with the last second of 9999 in a zone west of
# Greenwich. A round trip through the type makes a document that no reader of the type takes: the
# write succeeds and the next read of the object, and of each list that holds it, fails.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	var t metav1.Time
	fmt.Println("read:", json.Unmarshal([]byte(`"9999-12-31T23:59:59-01:00"`), &t))
	text, err := json.Marshal(t)
	fmt.Printf("written: %s %v\n", text, err)
	fmt.Println("read again:", json.Unmarshal(text, &metav1.Time{}) != nil, "(true: refused)")
	_, err = json.Marshal(time.Time(t.Time.UTC()))
	fmt.Println("time.Time refuses to write it:", err != nil)
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.32.13 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
read: <nil>
written: "10000-01-01T00:59:59Z" <nil>
read again: true (true: refused)
time.Time refuses to write it: true
EOF
diff want out
