package memory

import (
	"bytes"
	"cmp"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/rowlock/rowlock/sqlstore"
)

// rows is a tree of rows that are never changed in place.
type rows = btree.BTreeG[*sqlstore.Row]

// content is all that a database holds at one moment. Once it is stored in a Database it
// does not change.
type content struct {
	cluster string
	bounds  sqlstore.Bounds
	floors  sqlstore.Floors // as they were raised last, together
	trimmed int64           // revision up to which nothing is left that had ended by then
	bytes   int64           // see weight
	mark    mark            // of the floor, whose row may be gone
	notes   map[string]string

	live     *rows // by key
	past     *rows // that have ended, by key and revision
	log      *rows // all after trimmed, by revision
	expiring *rows // live ones that expire, by when

	forking sync.Mutex // held while the trees are copied, which notes in them that they were
}

// mark records when a revision was written.
type mark struct {
	revision int64
	at       time.Time
}

func newContent(cluster string) *content {
	return &content{cluster: cluster, live: newRows(byKey), past: newRows(byAge), log: newRows(byRevision), expiring: newRows(byExpiry)}
}

func newRows(less func(a, b *sqlstore.Row) bool) *rows {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

func byKey(a, b *sqlstore.Row) bool { return compare(&a.Key, &b.Key) < 0 }

func byAge(a, b *sqlstore.Row) bool {
	return cmp.Or(compare(&a.Key, &b.Key), cmp.Compare(a.Revision, b.Revision)) < 0
}

func byRevision(a, b *sqlstore.Row) bool { return a.Revision < b.Revision }

func byExpiry(a, b *sqlstore.Row) bool {
	return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.Revision, b.Revision)) < 0
}

// compare is Key.Compare without copies of the keys.
func compare(a, b *sqlstore.Key) int {
	if c := strings.Compare(a.Resource, b.Resource); c != 0 {
		return c
	}
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// copy returns the same content, to be changed. It takes the same time however much there is.
func (c *content) copy() *content {
	c.forking.Lock()
	defer c.forking.Unlock()
	return &content{
		cluster: c.cluster, bounds: c.bounds, floors: c.floors, trimmed: c.trimmed, bytes: c.bytes, mark: c.mark, notes: maps.Clone(c.notes),
		live: c.live.Copy(), past: c.past.Copy(), log: c.log.Copy(), expiring: c.expiring.Copy(),
	}
}

// rowBytes is the approximate memory of a row without its text: its struct, and its places in trees.
const rowBytes = 256

// weight returns the approximate memory of a row in bytes.
func weight(r *sqlstore.Row) int64 {
	return rowBytes + int64(len(r.Key.Resource)+len(r.Key.Namespace)+len(r.Key.Name)+len(r.Value))
}

// find returns the live row of a key, or nil.
func (c *content) find(k *sqlstore.Key) *sqlstore.Row {
	row, _ := c.live.Get(&sqlstore.Row{Key: *k})
	return row
}

// before returns the newest past row of a key up to a revision, or nil.
func (c *content) before(k *sqlstore.Key, revision int64) (found *sqlstore.Row) {
	c.past.Descend(&sqlstore.Row{Key: *k, Revision: revision}, func(r *sqlstore.Row) bool {
		if r.Key == *k {
			found = r
		}
		return false
	})
	return found
}

// add puts a new row at the head of the log, in the place of the live one of its key, which is
// ended by it. The row of a delete is past at once.
func (c *content) add(row, old *sqlstore.Row) {
	c.bounds.Head = row.Revision
	if old != nil {
		c.end(old, row.Revision)
	}
	c.keep(row)
}

// keep puts a row where rows of its kind are.
func (c *content) keep(row *sqlstore.Row) {
	c.bytes += weight(row)
	if row.Revision > c.trimmed {
		c.log.Set(row)
	}
	if row.Superseded != 0 {
		c.past.Set(row)
		return
	}
	c.live.Set(row)
	if !row.ExpiresAt.IsZero() {
		c.expiring.Set(row)
	}
}

// end makes a live row a past one, ended by a revision.
func (c *content) end(old *sqlstore.Row, revision int64) {
	c.live.Delete(old)
	if !old.ExpiresAt.IsZero() {
		c.expiring.Delete(old)
	}
	ended := *old
	ended.Superseded = revision
	c.past.Set(&ended)
	if ended.Revision > c.trimmed {
		c.log.Set(&ended)
	}
}

// copyForCaller returns a copy of a row for the caller, who owns its bytes. The rows of the database are shared by
// all its states and clones.
func copyForCaller(r *sqlstore.Row) sqlstore.Row {
	out := *r
	out.Value = bytes.Clone(r.Value)
	return out
}

// ownKey returns a key that holds on to no other memory, as a part of a request would. It shares what it can with a live row next to it.
// Package unique would do that, too, but may wait for a garbage collection, for which all writers would wait.
func (c *content) ownKey(k sqlstore.Key) sqlstore.Key {
	var own sqlstore.Key
	look := func(r *sqlstore.Row) bool {
		if r.Key.Resource == k.Resource {
			own.Resource = r.Key.Resource
			if r.Key.Namespace == k.Namespace {
				own.Namespace = r.Key.Namespace
			}
		}
		return false
	}
	pivot := &sqlstore.Row{Key: k}
	if c.live.Ascend(pivot, look); own.Resource == "" || own.Namespace != k.Namespace {
		c.live.Descend(pivot, look)
	}
	if own.Resource == "" {
		own.Resource = strings.Clone(k.Resource)
	}
	if own.Namespace == "" {
		own.Namespace = strings.Clone(k.Namespace)
	}
	own.Name = strings.Clone(k.Name)
	return own
}

// micros returns a time as databases keep it.
func micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}
