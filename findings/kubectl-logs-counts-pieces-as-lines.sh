#!/bin/sh
# k8s.io/cri-client v0.37.2, package logs, with which the kubelet answers kubectl logs (and crictl its own).
#
# Seen: a container runtime writes a line above 16 KiB in pieces, of which all but the last have the tag P. tailLines
# counts pieces: the last "line" of such a log is the end of a line. And a line that the other stream writes between
# two pieces goes into the middle of the first, and with timestamps the second half gets one of its own.
# Expected: lines, as the API documents ("the number of lines from the end of the logs to show"); the tag is there so that
# a reader joins the pieces of each stream.
# Who is hurt: whoever logs large JSON objects: kubectl logs --tail=1 prints no valid JSON, nor does a log in which
# both streams are busy; a program that reads logs by tailLines and resumes after it misses lines.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"k8s.io/cri-client/pkg/logs"
)

const file = `2024-01-01T00:00:00.000000000Z stdout F started
2024-01-01T00:00:01.000000000Z stdout P {"a":
2024-01-01T00:00:01.000000001Z stderr F a warning
2024-01-01T00:00:01.000000002Z stdout P "a long 
2024-01-01T00:00:01.000000003Z stdout F line"}
`

func main() {
	if err := os.WriteFile("log", []byte(file), 0o600); err != nil {
		panic(err)
	}
	one := int64(1)
	for _, options := range []*logs.LogOptions{{}, {TailLines: &one}, {Timestamp: true}} {
		var out bytes.Buffer
		if err := logs.ReadLogs(context.Background(), "log", "", options, nil, &out, &out); err != nil {
			panic(err)
		}
		fmt.Printf("tailLines: %v, timestamps: %v\n%s", options.TailLines != nil, options.Timestamp, out.String())
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/cri-client@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
tailLines: false, timestamps: false
started
{"a":a warning
"a long line"}
tailLines: true, timestamps: false
line"}
tailLines: false, timestamps: true
2024-01-01T00:00:00.000000000Z started
2024-01-01T00:00:01.000000000Z {"a":a warning
2024-01-01T00:00:01.000000002Z "a long line"}
EOF
diff want out
