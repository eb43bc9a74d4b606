package sqlstore

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// RelaxedFor bounds the age of relaxed commits that can be lost with the machine: while one that is not
	// durable is older, the next commit waits for the disk.
	RelaxedFor = 100 * time.Millisecond
	// relaxedSync is the time from the first of them to the beginning of a sync.
	relaxedSync = 50 * time.Millisecond
	// RelaxedReserve is the number of revisions that are reserved, durably, before relaxed commits use
	// them. Reserved ones are never assigned again after relaxed commits may have been lost.
	RelaxedReserve = 1_000_000
)

// relaxable are the resources whose commits may be relaxed, by the names that operators use.
var relaxable = map[string]string{"events": "events", "leases": "leases.coordination.k8s.io"}

// ParseRelaxed parses names such as "leases" and "events" and returns their resources. The error names an invalid
// one.
func ParseRelaxed(names []string) ([]string, error) {
	var resources []string
	for _, name := range names {
		resource, ok := relaxable[name]
		if !ok {
			return nil, fmt.Errorf("%q is neither events nor leases: all else is on the disk before it is acknowledged", name)
		}
		if !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	return resources, nil
}

// Relaxed tracks a driver's commits that are acknowledged before they are durable. A nil one relaxes nothing. One
// caller at a time reports commits, in their order.
type Relaxed struct {
	of   map[string]bool
	sync func() error
	wake chan struct{}

	mu      sync.Mutex
	oldest  time.Time // when the first commit was acknowledged for which no sync has begun
	syncing time.Time // the same for the sync in progress
	failed  error     // of the last sync
	stats   RelaxedStats
}

// RelaxedStats are counts since the start.
type RelaxedStats struct {
	Writes   int64         // operations that were acknowledged before they were durable
	Failures int64         // syncs that failed
	Unsynced time.Duration // age of the oldest such operation that is not known to be durable
}

// NewRelaxed makes one for resources ("leases.coordination.k8s.io"); sync makes all earlier commits durable. It is
// nil if there are no resources.
func NewRelaxed(resources []string, sync func() error) *Relaxed {
	if len(resources) == 0 {
		return nil
	}
	r := &Relaxed{of: make(map[string]bool), sync: sync, wake: make(chan struct{}, 1)}
	for _, name := range resources {
		r.of[name] = true
	}
	return r
}

// May reports whether a batch need not wait for the disk: all of it may be relaxed, and the disk keeps up with
// earlier commits.
func (r *Relaxed) May(batch []Txn) bool {
	if r == nil {
		return false
	}
	for i := range batch {
		for j := range batch[i].Ops {
			if !r.of[batch[i].Ops[j].Key.Resource] {
				return false
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed == nil && r.age() < RelaxedFor
}

func (r *Relaxed) age() time.Duration {
	switch {
	case !r.syncing.IsZero():
		return time.Since(r.syncing)
	case !r.oldest.IsZero():
		return time.Since(r.oldest)
	}
	return 0
}

// Committed records a relaxed commit of ops operations, just before it is acknowledged.
func (r *Relaxed) Committed(ops int) {
	r.mu.Lock()
	if r.oldest.IsZero() {
		r.oldest = time.Now()
	}
	r.stats.Writes += int64(ops)
	r.mu.Unlock()
	r.wakeUp()
}

// Durable records a commit that waited for the disk, which makes all commits before it durable.
func (r *Relaxed) Durable() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.oldest = time.Time{}
	r.mu.Unlock()
}

// Failed returns the error of the last sync, or nil.
func (r *Relaxed) Failed() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Fail records a failed sync outside of Run.
func (r *Relaxed) Fail(err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.failed = err
	r.stats.Failures++
	r.mu.Unlock()
	r.wakeUp()
}

// wakeUp wakes Run up.
func (r *Relaxed) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Mended records that everything became durable by other means after a failed sync.
func (r *Relaxed) Mended() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.failed, r.oldest, r.syncing = nil, time.Time{}, time.Time{}
	r.mu.Unlock()
}

// Stats returns the counts so far.
func (r *Relaxed) Stats() RelaxedStats {
	if r == nil {
		return RelaxedStats{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Unsynced = r.age()
	return s
}

// Run syncs soon after relaxed commits until closing is closed. Its owner makes the rest durable.
func (r *Relaxed) Run(closing <-chan struct{}) {
	for {
		select {
		case <-r.wake:
		case <-closing:
			return
		}
		pause := time.NewTimer(relaxedSync)
		select {
		case <-pause.C:
		case <-closing:
			pause.Stop()
			return
		}
		r.flush()
	}
}

// flush syncs once; after a failure it is called again.
func (r *Relaxed) flush() {
	r.mu.Lock()
	if r.syncing.IsZero() {
		r.syncing, r.oldest = r.oldest, time.Time{}
	}
	idle := r.syncing.IsZero() && r.failed == nil
	failures := r.stats.Failures
	r.mu.Unlock()
	if idle {
		return // a later durable commit made it so
	}
	err := r.sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.syncing = time.Time{}
		if failures == r.stats.Failures { // no other sync failed in the meantime
			r.failed = nil
		}
		return
	}
	r.failed = err
	r.stats.Failures++
	r.wakeUp()
}
