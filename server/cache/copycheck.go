package cache

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// checkRows is how many rows are held to memory at a time: a millisecond of one processor, as requests wait for longer pieces.
const checkRows = 50

// Checked is what came of holding memory to the rows.
type Checked struct {
	Objects int            // that are as their rows
	Wrong   []sqlstore.Key // the first of those that were not; they are as their rows now
	Others  int            // how many more were not
}

// wrongKeys is how many keys of objects that are not as their rows are kept.
const wrongKeys = 20

func (d *Checked) wrong(key sqlstore.Key) {
	if len(d.Wrong) < wrongKeys {
		d.Wrong = append(d.Wrong, key)
	} else {
		d.Others++
	}
}

// CheckCopy reads the rows of all objects up to a revision, and holds the objects to them. What LoadCopy
// took from a copy is as its row unless somebody put another row in the place of a live one, or the
// file was damaged: then the object is made anew from its row, as a start without a copy would have done. It keeps its
// revision, so watchers hear nothing of it. It rests after each piece so that it takes a share of one processor, and
// gives way to who reads and writes. Errors: those of the database; what was checked by then stays.
func (c *Cache) CheckCopy(ctx context.Context, from sqlstore.Copier, revision int64, share float64) (done Checked, err error) {
	k := copyCheck{cache: c, from: from, done: &done, share: share, of: make(map[int64]*Item, checkRows)}
	c.resources.Range(func(_, v any) bool {
		s := v.(*resource)
		if s.internal { // never in a copy
			return true
		}
		k.s = s
		// Each piece is of a snapshot of its own: one for all would hold what is superseded for minutes.
		for hand, more := (Position{}), true; more && err == nil; {
			more = false
			var last *Item
			(&Snapshot{resource: s, v: s.state()}).ascend("", hand, func(it *Item) bool {
				last = it
				if it.Revision <= revision {
					k.items = append(k.items, it)
				}
				more = len(k.items) == checkRows
				return !more
			})
			if last != nil {
				hand = After(last.Namespace, last.Name)
			}
			err = k.piece(ctx)
		}
		return err == nil
	})
	return done, err
}

// copyCheck holds a piece of a resource's objects to their rows.
type copyCheck struct {
	cache *Cache
	from  sqlstore.Copier
	done  *Checked
	share float64
	s     *resource
	items []*Item

	// Memory that is used again.
	revisions []int64
	of        map[int64]*Item
	room      []byte // of an object as memory has it
	line      []byte // of one as its row has it
}

func (k *copyCheck) piece(ctx context.Context) error {
	began := time.Now()
	for len(k.items) > 0 {
		// What was written since has another row, which came by the feed; the old one may be gone.
		k.items = slices.DeleteFunc(k.items, func(it *Item) bool { return !k.s.live(it) })
		err := k.read(ctx)
		if err == nil {
			break
		}
		var gone *sqlstore.CompactedError
		if !errors.As(err, &gone) {
			return err
		}
		// A live row that is not there was deleted by hand: of that the triggers tell the next start.
		asked := len(k.items)
		k.items = slices.DeleteFunc(k.items, func(it *Item) bool { return it.Revision == gone.Revision })
		if len(k.items) == asked { // nobody asked for that one: asking again would have no end
			return err
		}
	}
	k.items = k.items[:0]
	rest := time.NewTimer(time.Duration(float64(time.Since(began)) * (1/k.share - 1)))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rest.C:
		return nil
	}
}

// live says that an item is what readers are given.
func (s *resource) live(it *Item) bool {
	return s.get(it.Namespace, it.Name) == it
}

func (k *copyCheck) read(ctx context.Context) error {
	k.revisions = k.revisions[:0]
	clear(k.of)
	for _, it := range k.items {
		k.revisions, k.of[it.Revision] = append(k.revisions, it.Revision), it
	}
	slices.Sort(k.revisions)
	var rows []sqlstore.Row // that are another object's, or have another value
	right := 0
	var one sync.Mutex // pieces may come from several goroutines at once
	// Some of the rows may have come already when one is found to be gone, and then all come again.
	err := k.from.ReadRows(ctx, k.revisions, func(piece []sqlstore.Row) error {
		one.Lock()
		defer one.Unlock()
		for i := range piece {
			row := &piece[i]
			if it := k.of[row.Revision]; it != nil && k.same(it, row) {
				right++
				continue
			}
			again := *row
			again.Value = bytes.Clone(row.Value)
			rows = append(rows, again)
		}
		return nil
	})
	if err != nil {
		return err
	}
	k.done.Objects += right
	for i := range rows {
		row := &rows[i]
		it := k.of[row.Revision]
		if it == nil {
			continue
		}
		if key := k.s.keyOf(it); row.Key != key {
			// The row is another object's now: by its key somebody else has to look for it.
			k.done.wrong(key)
			continue
		}
		if k.s.reread(it, k.s.read(row, nil)) {
			k.done.wrong(row.Key)
		}
	}
	return nil
}

// same says that an object is as one that is read from its row. What has faults came from its row.
func (k *copyCheck) same(it *Item, row *sqlstore.Row) bool {
	if row.Key != k.s.keyOf(it) || it.Created != row.Created {
		return false
	}
	if it.Corrupt != nil {
		return true
	}
	k.line = slices.Grow(k.line[:0], len(row.Value)+lineMore)
	line, _, err := judged(k.cache.cfg.JSON, k.s.resource(), row, k.line)
	if err != nil {
		return false
	}
	var whole bool
	k.room, whole = it.appendWhole(k.room[:0])
	return whole && bytes.Equal(k.room, line[:len(line)-1])
}

// appendWhole is AppendJSON of what comes from a copy: bytes that were damaged before they were sealed are no longer what
// packing has seen come back. Then it is false.
func (it *Item) appendWhole(dst []byte) (_ []byte, whole bool) {
	b := it.body.Load()
	if !b.packed() {
		return append(dst, b.json()...), true
	}
	at := len(dst)
	dst, err := b.with.objects.Unpack(dst, b.data[b.split:])
	if err != nil || len(dst)-at != int(b.size)+1 {
		return dst[:at], false
	}
	return dst[:len(dst)-1], true
}
