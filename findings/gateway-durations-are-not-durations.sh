#!/bin/sh
# sigs.k8s.io/gateway-api v1.6.2, the schema of HTTPRoute (timeouts), with Go's time.Duration.
#
# Seen: the pattern of a duration is one to four whole numbers of at most five digits with h, m, s or ms. What Go writes for a
# second and a half, "1.5s", is refused, and so are 90 microseconds and 100000 hours. "1m1h" and "1s1s1s" are accepted.
# Expected: what metav1.Duration writes and reads, which every other Duration of Kubernetes' APIs is.
# Who is hurt: controllers and converters that copy a timeout from an Ingress' annotation or another resource by
# Duration.String(): whole seconds pass every test, and the first half second is refused by the server.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
source=$(go mod download -json sigs.k8s.io/gateway-api@v1.6.2 | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
grep -h 'pattern: .*ms' "$source/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml" | sort -u | sed 's/.*pattern: //' >pattern
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	text, err := os.ReadFile("pattern")
	if err != nil {
		panic(err)
	}
	pattern := regexp.MustCompile(strings.TrimSpace(string(text)))
	fmt.Println(pattern)
	for _, duration := range []time.Duration{0, 30 * time.Second, 90 * time.Minute, 1500 * time.Millisecond, 90 * time.Microsecond, 100000 * time.Hour} {
		fmt.Printf("%s: %v\n", duration, pattern.MatchString(duration.String()))
	}
	for _, text := range []string{"1500ms", "1m1h", "1s1s1s"} {
		fmt.Printf("%s: %v\n", text, pattern.MatchString(text))
	}
}
EOF
go mod init finding 2>/dev/null
go run . | tee out
cat >want <<'EOF'
^([0-9]{1,5}(h|m|s|ms)){1,4}$
0s: true
30s: true
1h30m0s: true
1.5s: false
90µs: false
100000h0m0s: false
1500ms: true
1m1h: true
1s1s1s: true
EOF
diff want out
