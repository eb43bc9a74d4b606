#!/bin/sh
# java.time of OpenJDK 17 with k8s.io/apimachinery v0.36.2, metav1.Time and metav1.MicroTime.
#
# Seen: OffsetDateTime.toString leaves out seconds that are zero: "2024-01-01T10:15Z", which Time refuses. It and Instant.toString
# write as many groups of three digits of the fraction as are not zero, and MicroTime reads exactly six digits: of instants
# cut to microseconds it refuses one in a thousand, and of instants with nanoseconds it reads one in a thousand.
# Expected: a spelling that does not depend on the instant. RFC 3339 has seconds always.
# Who is hurt: JVM programs that patch times as text: the renewTime of a Lease is refused once in a thousand renewals, which no
# test meets, and a time that was cut to minutes is refused always.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >Main.java <<'EOF'
import java.time.*;

public class Main {
    public static void main(String[] args) {
        for (int nanos : new int[] {0, 500_000_000, 123_456_000, 123_000_000, 123_456_789}) {
            System.out.println("Instant " + Instant.ofEpochSecond(1704103200, nanos));
            System.out.println("OffsetDateTime " + OffsetDateTime.of(2024, 1, 1, 10, 15, 0, nanos, ZoneOffset.UTC));
        }
    }
}
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		class, text, _ := strings.Cut(lines.Text(), " ")
		quoted := []byte(`"` + text + `"`)
		fmt.Printf("%-14s %-30s Time: %-5v MicroTime: %v\n", class, text,
			json.Unmarshal(quoted, &metav1.Time{}) == nil, json.Unmarshal(quoted, &metav1.MicroTime{}) == nil)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.36.2 2>/dev/null
java Main.java | go run -mod=mod . | tee out
cat >want <<'EOF'
Instant        2024-01-01T10:00:00Z           Time: true  MicroTime: false
OffsetDateTime 2024-01-01T10:15Z              Time: false MicroTime: false
Instant        2024-01-01T10:00:00.500Z       Time: true  MicroTime: false
OffsetDateTime 2024-01-01T10:15:00.500Z       Time: true  MicroTime: false
Instant        2024-01-01T10:00:00.123456Z    Time: true  MicroTime: true
OffsetDateTime 2024-01-01T10:15:00.123456Z    Time: true  MicroTime: true
Instant        2024-01-01T10:00:00.123Z       Time: true  MicroTime: false
OffsetDateTime 2024-01-01T10:15:00.123Z       Time: true  MicroTime: false
Instant        2024-01-01T10:00:00.123456789Z Time: true  MicroTime: false
OffsetDateTime 2024-01-01T10:15:00.123456789Z Time: true  MicroTime: false
EOF
diff want out
