// Package sqlstore stores every object of a cluster as rows of one versioned table in a SQL database.
//
// Whatever the driver, revisions are contiguous and rise in commit order; an acknowledged write is durable; writes
// are compare-and-swap; the feed delivers each revision to each server exactly once and in order; an unknown
// outcome is never guessed. Package storetest tests these properties.
//
// Goroutines: Store.Run starts those of Store, and waits for them.
package sqlstore

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Key names one object. Keys order bytewise by (Resource, Namespace, Name).
type Key struct {
	Resource  string // "pods", "deployments.apps"; never empty
	Namespace string // "" for cluster scope
	Name      string
}

// Row is one version of one object: the state that held from Revision until
// Superseded.
type Row struct {
	Key        Key
	Revision   int64     // the write that made this row
	Created    int64     // revision of the create that this row descends from
	Superseded int64     // revision that ended it; 0 while it is live
	Deleted    bool      // the row records a delete; Value is the last state
	Stale      bool      // set by Store alone: the value would be encrypted differently now
	Value      []byte    // encoded object without its resourceVersion; read-only once returned
	ExpiresAt  time.Time // zero: never
	WrittenAt  time.Time
	Unopened   error // set by Store alone: why the value cannot be decrypted; Value is then as it is stored
	Damaged    error // set by drivers: why the row differs from the written one (DamageError); none of its fields is reliable
}

// Change is one entry of the log: the row a revision wrote, and what it replaced.
type Change struct {
	Row
	PrevRevision int64  // 0 for a create
	PrevValue    []byte // nil for a create, or if previous values were not requested
	PrevUnopened error  // as Unopened, of the previous value
	PrevDamaged  error  // as Damaged, of the row that was replaced
	Aux          any    // the attachment of the writer's Op; set in Sink.Apply for every write of this Store, otherwise nil
}

// ChangesBytes bounds the bytes of values that Changes returns: the entry that exceeds it is the last one.
// Readers of many rows use it for their pages.
const ChangesBytes = 8 << 20

// Bytes returns the number of bytes of the change's values.
func (c *Change) Bytes() int { return len(c.Value) + len(c.PrevValue) }

// Verb is the kind of an Op.
type Verb uint8

const (
	Create Verb = iota + 1 // the key must be absent
	Update                 // the live row must be at Expect
	Delete                 // the live row must be at Expect
)

// Op is one compare-and-swap. For Delete, Value is the object's last state.
type Op struct {
	Verb      Verb
	Key       Key
	Expect    int64
	Value     []byte
	ExpiresAt time.Time
	Staged    int64 // set by Driver.Stage: the id of Value, which it has written; 0: Stage has not written Value
	AsStored  bool  // Value comes from the table, for this key, and is not encrypted again
	Damaged   bool  // Value comes from a damaged row: a driver with checksums gives the new row none that confirms it
	Immutable bool  // the bytes of Value never change, so drivers may keep them
	Aux       any   // passed to the feed of this process, never stored
}

// LargeValue is the size in bytes from which values are large: Store stages them.
const LargeValue = 1 << 20

// Txn is a list of Ops that commit together or not at all. A Txn that fails
// consumes no revision and spares the other Txns of its batch.
type Txn struct {
	Ops  []Op
	Lead string // it fails with ErrLeadLost unless this process has that lead when it commits; "": no lead is needed
}

// Outcome is the result of one Txn: a revision for each of its Ops, in order, or Err. Created holds the
// created revision of each written row.
type Outcome struct {
	Revisions []int64
	Created   []int64
	WrittenAt time.Time
	Err       error
}

// Bounds are the floor (highest compacted revision) and the head (newest
// revision) of the log, as one read saw them.
type Bounds struct {
	Floor int64
	Head  int64
}

// ScanRequest asks for one page of rows in key order.
type ScanRequest struct {
	Resource  string // "": all resources
	Namespace string // "": all namespaces
	After     Key    // the zero Key starts at the beginning; exclusive
	Limit     int    // must be positive
	Bytes     int    // the row whose value exceeds this is the last one; 0: no bound
	Revision  int64  // 0: live rows; otherwise the snapshot at that revision
}

// Full reports whether a page with that many rows, and bytes of values, is full.
func (r *ScanRequest) Full(rows, bytes int) bool {
	return rows >= r.Limit || r.Bytes > 0 && bytes >= r.Bytes
}

// Ends reports whether nothing follows a page of the request.
func (r *ScanRequest) Ends(page []Row) bool {
	bytes := 0
	for i := range page {
		bytes += len(page[i].Value)
	}
	return !r.Full(len(page), bytes)
}

// Compare orders keys bytewise by resource, namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Resource, other.Resource), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// Check returns whether a snapshot at a revision can be read: CompactedError, FutureError or nil.
func (b Bounds) Check(revision int64) error {
	switch {
	case revision < b.Floor:
		return &CompactedError{Revision: revision, Floor: b.Floor}
	case revision > b.Head:
		return &FutureError{Revision: revision, Head: b.Head}
	}
	return nil
}

// PastFrom returns the revision below which Driver.Past reads: before, or above all for 0.
func PastFrom(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}

// Start returns where a scan begins: After, moved into the resource and namespace of the request. ok is false if
// nothing can follow After.
func (r ScanRequest) Start() (after Key, ok bool, err error) {
	if r.Limit <= 0 {
		return Key{}, false, fmt.Errorf("scanning %q: limit %d is not positive", r.Resource, r.Limit)
	}
	if r.Resource == "" {
		return r.After, true, nil
	}
	if c := cmp.Compare(r.After.Resource, r.Resource); c > 0 {
		return Key{}, false, nil
	} else if c < 0 {
		return Key{Resource: r.Resource, Namespace: r.Namespace}, true, nil
	}
	if r.Namespace == "" {
		return r.After, true, nil
	}
	if c := cmp.Compare(r.After.Namespace, r.Namespace); c > 0 {
		return Key{}, false, nil
	} else if c < 0 {
		return Key{Resource: r.Resource, Namespace: r.Namespace}, true, nil
	}
	return r.After, true, nil
}
