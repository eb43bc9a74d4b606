package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is the reason of a database's refusal in metrics and logs.
type Kind string

const (
	KindFull        Kind = "full"        // ErrFull
	KindReadOnly    Kind = "read-only"   // ErrReadOnly
	KindGone        Kind = "gone"        // ErrGone
	KindDamaged     Kind = "damaged"     // CorruptError without a key
	KindRefused     Kind = "refused"     // ErrRefused
	KindUncertain   Kind = "uncertain"   // ErrUncertain
	KindBusy        Kind = "busy"        // ErrBusy
	KindUnavailable Kind = "unavailable" // ErrUnavailable
	KindRejected    Kind = "rejected"    // about one value only
)

// OpWrite is the operation of commits; others have the names of queries.
const OpWrite = "write"

// KindOf returns the Kind of a Driver's error; "" if the database is not the cause: an answer about a key or a
// revision, a cancelled call, a closed driver.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	for _, k := range []struct { // the most specific first: an error may match several
		err  error
		kind Kind
	}{
		{ErrClosed, ""}, {ErrGone, KindGone}, {ErrFull, KindFull}, {ErrReadOnly, KindReadOnly}, {ErrRefused, KindRefused},
		{ErrUncertain, KindUncertain}, {ErrBusy, KindBusy}, {ErrUnavailable, KindUnavailable},
		{context.Canceled, ""}, {context.DeadlineExceeded, ""}, {ErrTooLarge, ""}, {ErrKeyUnavailable, ""},
	} {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		if corrupt.Key == (Key{}) {
			return KindDamaged
		}
		return ""
	}
	_, unmet := Unmet(err)
	var (
		compacted *CompactedError
		future    *FutureError
		schema    *SchemaError
		sealing   *SealError
	)
	if unmet || errors.As(err, &compacted) || errors.As(err, &future) || errors.As(err, &schema) || errors.As(err, &sealing) {
		return ""
	}
	return KindRejected
}

// lasts reports whether a refusal of this kind affects further calls of the operation.
func (k Kind) lasts() bool { return k != "" && k != KindRejected }

// Refusal is one operation that the database refuses.
type Refusal struct {
	Operation string
	Kind      Kind
	Err       error // in the database's words
}

// refusals are the database's refusals by operation and kind, as of the last call of each. The log reports their
// beginning and end, at most once a minute.
type refusals struct {
	elapsed  func() time.Duration
	observer Observer
	log      *slog.Logger
	active   atomic.Int64 // how many there are
	mu       sync.Mutex
	list     map[refusedBy]*refusal
}

type refusedBy struct {
	operation string
	kind      Kind
}

type refusal struct {
	active   bool
	err      error         // the last one
	since    time.Duration // when it began
	last     time.Duration // when it last occurred
	count    int           // since it began
	logged   bool          // its beginning was logged
	loggedAt time.Duration // when a message of this kind was last logged
	text     string        // that message; "" before the first
}

const (
	// refusedFor is the time for which a refusal counts after its last occurrence: without writes, nothing
	// shows that there is room again.
	refusedFor = 30 * time.Second
	logEvery   = time.Minute
)

func newRefusals(cfg Config) *refusals {
	return &refusals{elapsed: cfg.Elapsed, observer: cfg.Observer, log: cfg.Log, list: map[refusedBy]*refusal{}}
}

// record records the result of an operation, and logs a change.
func (r *refusals) record(operation string, err error) {
	kind := KindOf(err)
	if kind == "" {
		if err == nil && r.active.Load() > 0 {
			r.done(operation)
		}
		return
	}
	r.observer.Refused(operation, kind)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.elapsed()
	f := r.list[refusedBy{operation, kind}]
	if f == nil {
		f = &refusal{}
		r.list[refusedBy{operation, kind}] = f
	}
	if !f.active {
		f.active, f.since, f.count, f.logged = true, now, 0, false
		r.active.Add(1)
	}
	f.err, f.last = err, now
	f.count++
	if text := err.Error(); (!f.logged || text != f.text) && (f.text == "" || now-f.loggedAt >= logEvery) {
		f.logged, f.loggedAt, f.text = true, now, text
		r.log.Log(context.Background(), level(operation), began(operation, kind), "operation", operation, "kind", kind, "error", err)
	}
}

// done records that the database accepts an operation again.
func (r *refusals) done(operation string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for by, f := range r.list {
		if by.operation == operation && f.active {
			r.end(by, f, ended(operation))
		}
	}
}

func (r *refusals) end(by refusedBy, f *refusal, message string) {
	f.active = false
	r.active.Add(-1)
	if f.logged { // at a level that is shown by default, like the beginning
		r.log.Warn(message, "operation", by.operation, "kind", by.kind, "refused", f.count, "for", (r.elapsed() - f.since).Round(time.Millisecond), "error", f.err)
	}
}

// now returns the present refusals. It ends those that have not recurred for refusedFor.
func (r *refusals) now() []Refusal {
	if r.active.Load() == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []Refusal
	for by, f := range r.list {
		switch {
		case !f.active:
		case r.elapsed()-f.last > refusedFor:
			r.end(by, f, "the refused operation was not tried again")
		case by.kind.lasts() && by.kind != KindGone: // Healthy reports it
			found = append(found, Refusal{by.operation, by.kind, f.err})
		}
	}
	sort.Slice(found, func(i, j int) bool { // writes first, and within an operation the latest first
		a, b := found[i], found[j]
		switch {
		case a.Operation == b.Operation:
			return r.list[refusedBy{a.Operation, a.Kind}].last > r.list[refusedBy{b.Operation, b.Kind}].last
		case a.Operation == OpWrite || b.Operation == OpWrite:
			return a.Operation == OpWrite
		}
		return a.Operation < b.Operation
	})
	return found
}

// upkeep are the operations by which the store maintains itself.
var upkeep = []string{"trim", "retain", "pack", "forget", "lead"}

// writes reports whether an operation writes, for clients or for maintenance.
func writes(operation string) bool {
	return operation == OpWrite || slices.Contains(upkeep, operation)
}

func level(operation string) slog.Level {
	if operation == OpWrite {
		return slog.LevelError
	}
	return slog.LevelWarn
}

func began(operation string, kind Kind) string {
	switch {
	case kind == KindRejected && operation == OpWrite:
		return "the store rejects a write"
	case operation == OpWrite:
		return "the store takes no writes"
	case operation == "lead":
		return "the store grants no leadership: compaction, expiry and controllers do not run"
	case slices.Contains(upkeep, operation):
		return "the store cannot be compacted"
	}
	return "the store answers no reads"
}

func ended(operation string) string {
	switch {
	case operation == OpWrite:
		return "the store takes writes again"
	case operation == "lead":
		return "the store grants leadership again"
	case slices.Contains(upkeep, operation):
		return "the store can be compacted again"
	}
	return "the store answers reads again"
}

// Writable returns the reason why the database refuses writes, of clients or for maintenance; nil: none is
// known.
func (s *Store) Writable() error {
	if err := s.driver.Healthy(); err != nil {
		s.refused.record(OpWrite, err)
		return err
	}
	return s.refusal(writes)
}

// Readable returns the reason why the database refuses reads; nil: none is known.
func (s *Store) Readable() error {
	return s.refusal(func(operation string) bool { return !writes(operation) })
}

func (s *Store) refusal(of func(string) bool) error {
	for _, f := range s.refused.now() {
		switch {
		case !of(f.Operation):
		case f.Operation == OpWrite:
			return f.Err
		default:
			return fmt.Errorf("%s: %w", f.Operation, f.Err)
		}
	}
	return nil
}

// Refusals returns the known present refusals of the database.
func (s *Store) Refusals() []Refusal { return s.refused.now() }
