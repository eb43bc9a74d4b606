package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/sqlstore"
)

// A damaged page of the table, or of what leads to it, can hide rows without any row being wrong. The indexes lie in
// other pages and have each row, so reading everything compares the table with them. It costs a walk over kv_live, which
// has the keys of the live rows, and 16 bytes of memory for each of them while it lasts.

// ChecksRows implements sqlstore.Driver.
func (d *Driver) ChecksRows() bool { return true }

// listing is what the indexes say is there at a revision, in the order of revisions.
type listing struct{ rows []listedRow }

type listedRow struct {
	revision int64
	key      uint32 // checksum of the key
	ended    bool   // kv_ended has it, which has no keys
	seen     bool   // in the table; set by the one goroutine that reads the row
}

// walkStep is how many entries of an index are read between two looks at how far the other walk is.
const walkStep = 64

// walks are two walks over kv_live that go towards each other.
type walks struct {
	mu sync.Mutex
	at [2]*sqlstore.Key // how far each is; nil: it has not begun
}

// met says how far a walk is, and whether the other one has been there.
func (w *walks) met(walk int, at sqlstore.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[walk] = &at
	if w.at[1-walk] == nil {
		return false
	}
	return w.at[0].Compare(*w.at[1]) > 0
}

var errMet = errors.New("the walks have met")

// list reads the indexes, kv_live from both ends at once. kv_ended is last: rows that end meanwhile are in it.
func (d *Driver) list(ctx context.Context, revision int64) (*listing, error) {
	queries := []string{qListed, qListedBack}
	err := d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		if newest, err := c.number(qNewest); err != nil {
			return err
		} else if newest > b.Head || b.Floor > b.Head {
			return &sqlstore.CorruptError{Revision: newest, Reason: fmt.Sprintf("kv_meta has the newest revision %d and the compacted one %d, and the table goes on to %d", b.Head, b.Floor, newest)}
		}
		var v [1]driver.Value
		_, err := c.one(v[:], "PRAGMA encoding")
		if text(v[0]) != "UTF-8" || d.opened < 3 || runtime.GOMAXPROCS(0) == 1 { // others are in another order
			queries = queries[:1]
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var w walks
	parts := make([][]listedRow, len(queries))
	group, within := errgroup.WithContext(ctx)
	for i, query := range queries {
		group.Go(func() (err error) {
			parts[i], err = d.walk(within, revision, query, func(at sqlstore.Key) bool { return len(queries) > 1 && w.met(i, at) })
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	l := &listing{slices.Concat(parts...)}
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		return c.lend(func(row cells) error {
			n, _ := row.number(0)
			l.rows = append(l.rows, listedRow{revision: n, ended: true})
			return ctx.Err()
		}, qOutlineEnded, revision)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.rows, func(a, b listedRow) int {
		switch c := cmp.Compare(a.revision, b.revision); {
		case c != 0 || a.ended == b.ended:
			return c
		case b.ended:
			return -1
		}
		return 1
	})
	l.rows = slices.CompactFunc(l.rows, func(a, b listedRow) bool { return a.revision == b.revision }) // the walks overlap
	return l, nil
}

// walk reads kv_live in the order of a query, until met.
func (d *Driver) walk(ctx context.Context, revision int64, query string, met func(sqlstore.Key) bool) (rows []listedRow, err error) {
	var sums sqlstore.Summer
	err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
		if err := b.Check(revision); err != nil {
			return err
		}
		return c.lend(func(row cells) error {
			n, _ := row.number(0)
			resource, namespace, name := row.text(1), row.text(2), row.text(3)
			rows = append(rows, listedRow{revision: n, key: sums.Key(resource, namespace, name)})
			if len(rows)%walkStep != 0 {
				return nil
			}
			if met(sqlstore.Key{Resource: string(resource), Namespace: string(namespace), Name: string(name)}) {
				return errMet
			}
			return ctx.Err()
		}, query, revision)
	})
	if err == errMet {
		err = nil
	}
	return rows, err
}

// place is where a row is among those that are listed. Rows are mostly asked for in their order, so next is looked at
// first. It looks at revisions alone: other readers mark rows meanwhile.
func (l *listing) place(revision int64, next int) (int, bool) {
	if next >= len(l.rows) || l.rows[next].revision != revision {
		next = sort.Search(len(l.rows), func(i int) bool { return l.rows[i].revision >= revision })
	}
	return next, next < len(l.rows) && l.rows[next].revision == revision
}

// reader compares rows of the table with the listing, for one goroutine. The error is the row's damage.
func (l *listing) reader() func(revision int64, key uint32) error {
	next := 0
	return func(revision int64, key uint32) error {
		i, ok := l.place(revision, next)
		if !ok {
			return &sqlstore.DamageError{Reason: "no index has the row, so it may have ended"}
		}
		next = i + 1
		r := &l.rows[i]
		r.seen = true
		if !r.ended && r.key != key {
			return &sqlstore.DamageError{Reason: "the index kv_live has another key for the row"}
		}
		return nil
	}
}

// missing hands out what the indexes have and the table has not.
func (d *Driver) missing(ctx context.Context, l *listing, revision int64, take func([]sqlstore.Row) error) error {
	lost := map[int64]bool{}
	for i := range l.rows {
		if !l.rows[i].seen {
			lost[l.rows[i].revision] = true
		}
	}
	if len(lost) == 0 {
		return nil
	}
	reason := &sqlstore.DamageError{Reason: "an index has the row, but the table does not"}
	var rows []sqlstore.Row
	err := d.snapshot(ctx, func(c *conn, _ sqlstore.Bounds) error { // kv_live has the keys
		return c.lend(func(row cells) error {
			n, _ := row.number(0)
			if !lost[n] {
				return ctx.Err()
			}
			key := sqlstore.Key{Resource: string(row.text(1)), Namespace: string(row.text(2)), Name: string(row.text(3))}
			rows = append(rows, sqlstore.Row{Key: key, Revision: n, Created: n, Value: []byte{}, Damaged: reason})
			delete(lost, n)
			return ctx.Err()
		}, qListed, revision)
	})
	for n := range lost { // which ended since
		if err == nil {
			err = &sqlstore.CorruptError{Revision: n, Reason: reason.Error()}
		}
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	return take(rows)
}
