// Package upkeep holds the operators' work on a store: status, compaction, checks, repair and rewriting. It
// uses only the Driver interface, and runs while servers use the database.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Status is the overview for operators.
type Status struct {
	sqlstore.Stats
	OldestSnapshot time.Time `json:"oldestSnapshot"` // from when on the past can be read; zero: unknown
	Floors         sqlstore.Floors
	Served         bool `json:"served"` // a server does this store's compaction
}

// Look gathers the status.
func Look(ctx context.Context, d sqlstore.Driver) (s Status, err error) {
	if s.Stats, err = d.Stats(ctx); err != nil {
		return s, err
	}
	if s.Floors, err = d.Floors(ctx); err != nil {
		return s, err
	}
	if s.OldestSnapshot, _, err = d.Since(ctx, max(s.Floors.Of(""), 1)); err != nil {
		return s, err
	}
	_, release, ok, err := d.Lead(ctx, sqlstore.CompactorLead)
	if err != nil {
		return s, err
	}
	if ok {
		release()
	}
	s.Served = !ok
	return s, nil
}

// Hold finds revisions that stay readable for a while: the head, and a floor that will not be overtaken soon.
// If no server compacts, it prevents compaction until release; otherwise it keeps a distance of half of the
// kept history from the floor.
func Hold(ctx context.Context, d sqlstore.Driver) (window sqlstore.Bounds, release func(), err error) {
	_, release, ok, err := d.Lead(ctx, sqlstore.CompactorLead)
	if err != nil {
		return window, nil, err
	}
	if !ok {
		release = func() {}
	}
	if window, err = d.Bounds(ctx); err == nil && !ok && window.Floor < window.Head {
		window.Floor, err = middle(ctx, d, window)
	}
	if err != nil {
		release()
		return window, nil, err
	}
	return window, release, nil
}

// middle returns the revision in the middle, by time, of the history.
func middle(ctx context.Context, d sqlstore.Driver, b sqlstore.Bounds) (int64, error) {
	first, err := d.Changes(ctx, b.Floor, 1, false)
	if compacted, ok := errors.AsType[*sqlstore.CompactedError](err); ok { // just now
		return compacted.Floor + (b.Head-compacted.Floor)/2, nil
	}
	if err != nil || len(first) == 0 {
		return b.Floor, err
	}
	last, err := d.Changes(ctx, b.Head-1, 1, false)
	if err != nil || len(last) == 0 {
		return b.Floor, err
	}
	oldest := first[0].WrittenAt
	at, err := d.RevisionAt(ctx, oldest.Add(last[0].WrittenAt.Sub(oldest)/2))
	return min(max(at, b.Floor), b.Head), err
}

// Snapshot reads all objects as they were at a revision, in key order, page by page.
func Snapshot(ctx context.Context, d sqlstore.Driver, revision int64, each func([]sqlstore.Row) error) error {
	return Scan(ctx, d, sqlstore.ScanRequest{Revision: revision}, each)
}

// Scan reads all that a request asks for at its revision, page by page, however
// much that is. Before the first write, at revision 0, there was nothing.
func Scan(ctx context.Context, d sqlstore.Driver, req sqlstore.ScanRequest, each func([]sqlstore.Row) error) error {
	if req.Revision == 0 {
		return nil
	}
	for req.Limit, req.Bytes = 1000, sqlstore.ChangesBytes; ; {
		rows, err := d.Scan(ctx, req)
		if err != nil {
			return err
		}
		if err := each(rows); err != nil {
			return err
		}
		if req.Ends(rows) {
			return nil
		}
		req.After = rows[len(rows)-1].Key
	}
}

// Compact deletes the history up to a revision, in small transactions with rests
// between, so that servers are not hurt. It may be interrupted and begun again.
// progress may be nil.
func Compact(ctx context.Context, d sqlstore.Driver, to int64, progress func(rows int64)) (floor, rows int64, err error) {
	b, err := d.Bounds(ctx)
	if err != nil {
		return 0, 0, err
	}
	if to > b.Head {
		return b.Floor, 0, &sqlstore.FutureError{Revision: to, Head: b.Head}
	}
	floor = max(to, b.Floor)
	report := func(n int) {
		if rows += int64(n); progress != nil {
			progress(rows)
		}
	}
	f, err := d.Floors(ctx)
	if err != nil {
		return floor, 0, err
	}
	before, err := d.Stats(ctx)
	if err != nil {
		return floor, 0, err
	}
	if to <= b.Floor && f.Past != nil { // within the packs
		floor, err = compactPacked(ctx, d, f, to, report)
	} else {
		err = sqlstore.Trim(ctx, d, to, 1, report)
	}
	if err == nil {
		err = sqlstore.Forget(ctx, d, 1)
	}
	if after, e := d.Stats(ctx); err == nil && e == nil {
		rows += max(0, before.PackedRows-after.PackedRows)
	}
	if err != nil {
		err = fmt.Errorf("compacting to %d: %w", to, err)
	}
	return floor, rows, err
}

// compactPacked raises the floors of snapshots alone.
func compactPacked(ctx context.Context, d sqlstore.Driver, f sqlstore.Floors, to int64, deleted func(int)) (floor int64, err error) {
	next := sqlstore.Floors{Log: f.Log, Past: map[string]int64{"": to}}
	for name := range f.Past {
		next.Past[name] = to
	}
	if next, err = d.Retain(ctx, next); err == nil {
		err = sqlstore.Pack(ctx, d, 1, func(p sqlstore.Packed) { deleted(p.Deleted) })
	}
	return next.Lowest(), err
}
