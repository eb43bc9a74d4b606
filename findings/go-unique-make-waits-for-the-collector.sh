#!/bin/sh
# Go 1.26.8: unique.Make (and weak.Pointer.Value, on which it stands), with golang.org/x/exp/trace v0.0.0-20261113113407-e3970619a1a4
# to count the waits.
#
# Seen: while another goroutine decodes large documents, unique.Make of a text that is already known parks its goroutine until the
# garbage collection ends ("GC weak to strong wait" in an execution trace): some 50 times in 8 seconds, half of them for 12 to 30 ms,
# the longest for 57 to 87 ms. The same lookup in a map behind a mutex took 0.02 to 4 ms, once 24 ms on a busy machine.
# Expected: to find a known value is a lookup, which waits for no collection; those of Go stop a program for less than a millisecond.
# Who is hurt: servers that intern names of namespaces or metric labels on the way of each request. One that holds a mutex meanwhile
# makes all others wait, and neither a processor profile nor the pauses in runtime/metrics show why.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOTOOLCHAIN=go1.26.8
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
	"unique"

	events "golang.org/x/exp/trace"
)

var document []any // what was decoded last

func main() {
	runtime.GOMAXPROCS(2)
	var recorded bytes.Buffer
	if err := trace.Start(&recorded); err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	end := time.Now().Add(8 * time.Second)
	all.Go(func() {
		for time.Now().Before(end) {
			items := make([]any, 200000)
			for i := range items {
				items[i] = map[string]any{"name": strconv.Itoa(i), "size": i}
			}
			document = items
		}
	})
	namespace := unique.Make("kube-system")
	known, mu := map[string]string{"kube-system": "kube-system"}, sync.Mutex{}
	slowest := func(find func()) *time.Duration {
		most := new(time.Duration)
		all.Go(func() {
			for time.Now().Before(end) {
				began := time.Now()
				find()
				*most = max(*most, time.Since(began))
				time.Sleep(200 * time.Microsecond)
			}
		})
		return most
	}
	made := slowest(func() { unique.Make("kube-system") })
	found := slowest(func() {
		mu.Lock()
		_ = known["kube-system"]
		mu.Unlock()
	})
	all.Wait()
	trace.Stop()
	runtime.KeepAlive(namespace)

	waits := 0
	r, err := events.NewReader(&recorded)
	if err != nil {
		panic(err)
	}
	for {
		e, err := r.ReadEvent()
		if err != nil {
			break
		}
		if e.Kind() == events.EventStateTransition && e.StateTransition().Reason == "GC weak to strong wait" {
			waits++
		}
	}
	fmt.Fprintln(os.Stderr, "waits:", waits, "slowest unique.Make:", *made, "slowest lookup in a map:", *found)
	fmt.Println("unique.Make of a known text waits for collections:", waits >= 5)
	fmt.Println("its slowest call takes 5 ms or more:", *made >= 5*time.Millisecond)
}
EOF
go mod init finding 2>/dev/null
go get golang.org/x/exp@v0.0.0-20261113113407-e3970619a1a4 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
unique.Make of a known text waits for collections: true
its slowest call takes 5 ms or more: true
EOF
diff want out
