#!/bin/sh
# k8s.io/apimachinery v0.36.2 (util/wait), k8s.io/client-go v0.36.2 (util/retry).
#
# Seen: a Backoff's Cap, "a limit on revised values of the duration", also ends the retries: the first delay that
# reaches it sets Steps to 0. Ten steps of 1 ms, doubled each time, are ten tries without a cap, three with a cap
# of 5 ms, and one, with no retry at all, if the cap equals the first delay and there is a factor.
# Expected: ten tries, the later ones at the capped delay, as the caps of other libraries and of the same
# package's DelayFunc work.
# Who is hurt: controllers that add a cap to bound their waits and so lose their retries; RetryOnConflict with
# such a Backoff returns the first conflict, and only under load.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

func main() {
	conflict := errors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", fmt.Errorf("changed"))
	for _, limit := range []time.Duration{0, time.Second, 5 * time.Millisecond, time.Millisecond} {
		backoff := wait.Backoff{Duration: time.Millisecond, Factor: 2, Steps: 10, Cap: limit}
		updates, polls := 0, 0
		retry.RetryOnConflict(backoff, func() error { updates++; return conflict })
		wait.ExponentialBackoff(backoff, func() (bool, error) { polls++; return false, nil })
		fmt.Printf("Steps 10, Cap %v: RetryOnConflict %d, ExponentialBackoff %d\n", limit, updates, polls)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.36.2 k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
Steps 10, Cap 0s: RetryOnConflict 10, ExponentialBackoff 10
Steps 10, Cap 1s: RetryOnConflict 10, ExponentialBackoff 10
Steps 10, Cap 5ms: RetryOnConflict 3, ExponentialBackoff 3
Steps 10, Cap 1ms: RetryOnConflict 1, ExponentialBackoff 1
EOF
diff want out
