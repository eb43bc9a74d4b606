#!/bin/sh
# k8s.io/client-go v0.36.2 (tools/leaderelection).
#
# Seen: a LeaseDuration of 1.9 s is written to the lease as 1 second, and it is the lease by which the other candidates
# go: when the leader loses its connection, another one leads after a second, while the first leads on for its RenewDeadline
# of 1.5 s. With 2 s instead of 1.9 they do not overlap. A LeaseDuration of 900 ms is written as 0, which
# the API refuses for a Lease ("must be greater than 0").
# Expected: the fraction rounded up, or an error. The constructor refuses a LeaseDuration that is not above RenewDeadline,
# and accepts these.
# Who is hurt: controllers that fail over fast: each loss of the connection, as in a restart of the API server, gives two
# leaders for up to a second. With less than a second nobody ever leads, and each candidate only logs it.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// A lease is the one object that all candidates share.
type lease struct {
	sync.Mutex
	text    []byte
	version int
}

// A lock is a candidate's view of the lease, which an outage takes away.
type lock struct {
	*lease
	name string
	seen int
	out  atomic.Bool
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.Lock()
	defer l.Unlock()
	switch {
	case l.out.Load():
		return nil, nil, errors.New("no connection")
	case l.text == nil:
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "a")
	}
	l.seen = l.version
	record := &resourcelock.LeaderElectionRecord{}
	return record, l.text, json.Unmarshal(l.text, record)
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.Lock()
	defer l.Unlock()
	switch {
	case l.out.Load():
		return errors.New("no connection")
	case l.seen != l.version:
		return errors.New("conflict")
	case record.LeaseDurationSeconds <= 0: // as the API does
		return errors.New("spec.leaseDurationSeconds: must be greater than 0")
	}
	l.text, _ = json.Marshal(record)
	l.version++
	l.seen = l.version
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.name }
func (l *lock) Describe() string   { return l.name }

// run starts two candidates, cuts the first one off, and returns what the lease said and whether both have led at once.
func run(duration, deadline time.Duration) string {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.New(nil))) // no log
	defer cancel()
	shared := &lease{}
	var leading atomic.Int32
	var both atomic.Bool
	var locks []*lock
	started := make(chan struct{}, 2)
	for _, name := range []string{"first", "second"} {
		l := &lock{lease: shared, name: name}
		locks = append(locks, l)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: l, LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: 50 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					if leading.Add(1) == 2 {
						both.Store(true)
					}
					started <- struct{}{}
				},
				OnStoppedLeading: func() {
					leading.Add(-1)
				},
			},
		})
		if err != nil {
			panic(err)
		}
		go elector.Run(ctx)
		if name == "second" {
			continue
		}
		select {
		case <-started:
		case <-time.After(3 * time.Second):
			return "nobody leads"
		}
	}
	time.Sleep(300 * time.Millisecond)
	record, _, err := locks[1].Get(ctx)
	if err != nil {
		panic(err)
	}
	locks[0].out.Store(true)
	<-started
	return fmt.Sprintf("leaseDurationSeconds %d, two leaders at once: %v", record.LeaseDurationSeconds, both.Load())
}

func main() {
	for _, c := range []struct{ duration, deadline time.Duration }{
		{2000 * time.Millisecond, 1500 * time.Millisecond},
		{1900 * time.Millisecond, 1500 * time.Millisecond},
		{900 * time.Millisecond, 800 * time.Millisecond},
	} {
		fmt.Printf("LeaseDuration %v: %s\n", c.duration, run(c.duration, c.deadline))
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.36.2 k8s.io/apimachinery@v0.36.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
LeaseDuration 2s: leaseDurationSeconds 2, two leaders at once: false
LeaseDuration 1.9s: leaseDurationSeconds 1, two leaders at once: true
LeaseDuration 900ms: nobody leads
EOF
diff want out
