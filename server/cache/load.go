package cache

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/sqlstore"
)

// Load fills the cache with all live rows and returns their revision; Apply takes the changes after it. Load drops what the
// cache held before, and ends its watchers, because it does not know the changes in between. Apply must not be called
// meanwhile. Readers see the former state until the new one is complete.
func (c *Cache) Load(ctx context.Context, s Source) (revision int64, err error) {
	return c.load(ctx, s, false)
}

// load is Load; if afresh, it uses no item that is in memory again.
func (c *Cache) load(ctx context.Context, s Source, afresh bool) (revision int64, err error) {
	var differ []sqlstore.Row // between the table and its indexes
	for try := 0; ; try++ {
		revision, err = s.Head(ctx)
		if err != nil {
			return 0, err
		}
		loaded, err := c.read(ctx, s, revision, differ, afresh)
		var gone *sqlstore.CompactedError
		if errors.As(err, &gone) && try < 5 {
			continue
		}
		if errors.Is(err, sqlstore.ErrIndexMismatch) {
			found := s.CheckRows(ctx, false, func(rows []sqlstore.Row) error {
				differ = append(differ, rows...)
				return nil
			})
			if found != nil {
				return 0, found
			}
			if len(differ) > 0 { // read again, and mark these as damaged
				continue
			}
		}
		if err != nil {
			return 0, err
		}
		c.replace(loaded, revision)
		c.publish(revision)
		return revision, nil
	}
}

// Reload implements sqlstore.Reloader.
func (c *Cache) Reload(ctx context.Context, s *sqlstore.Store, afresh bool) (int64, error) {
	return c.load(ctx, s, afresh)
}

// read makes the items of a revision, by storage. It uses items in memory again, with their wire forms, unless afresh. The
// rows of differ, which differ between the table and its indexes, become corrupt; with them a mismatch is no error.
func (c *Cache) read(ctx context.Context, s Source, revision int64, differ []sqlstore.Row, afresh bool) (map[*resource]*loaded, error) {
	if revision == 0 {
		return nil, nil
	}
	l := &loading{cache: c, found: map[*resource]*loaded{}, afresh: afresh}
	take, lost := l.take, func() error { return nil }
	if len(differ) > 0 {
		take, lost = l.takeDamaged(differ, revision)
	}
	if err := s.ReadAll(ctx, revision, take); err != nil && (len(differ) == 0 || !errors.Is(err, sqlstore.ErrIndexMismatch)) {
		return nil, err
	}
	if err := lost(); err != nil {
		return nil, err
	}
	l.sort()
	return l.found, nil
}

// loadBuffers is memory for reading and packing one item after the other.
type loadBuffers struct {
	line    []byte
	packing packBuffers
}

// item makes the item of a row, or uses the one in memory again unless afresh. It packs the item at once if there is no room
// for it plain and there is a shape; before that it calls look, while the item has its metadata.
func (s *resource) item(row *sqlstore.Row, room *loadBuffers, afresh bool, look func(*Item)) *Item {
	it := s.get(row.Key.Namespace, row.Key.Name)
	if it != nil && it.Revision == row.Revision && it.Err() == nil && row.Damaged == nil && !afresh {
		look(it)
		return it
	}
	of := s.packer.known()
	if of == nil || s.plain.Available() {
		it = s.read(row, nil)
		s.plain.Grow(it.Size())
		look(it)
	} else {
		room.line = slices.Grow(room.line[:0], len(row.Value)+64)
		it = s.read(row, room.line)
		look(it)
		if s.packer.pack(it, of, &room.packing) == 0 {
			b := it.body.Load()
			it.body.Store(b.cloned())
		}
	}
	return it
}

// replace replaces all items by those of a revision.
func (c *Cache) replace(loaded map[*resource]*loaded, revision int64) {
	c.making.Lock()
	defer c.making.Unlock()
	c.base, c.known, c.quiet = revision, revision, nil
	c.loads.Add(1)
	c.note(nil)
	for s := range c.all() {
		s.replace(loaded[s], revision)
	}
}

func (s *resource) replace(with *loaded, revision int64) {
	if with == nil {
		with = &loaded{items: newItems()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread.Store(false)
	if with.keys == nil || with.keys != s.keys.Load() {
		with.index = s.indexOf(with.items)
	}
	had := false
	s.alter(func() {
		s.items, s.index, s.corrupt, s.changed, s.removed = with.items, with.index, with.corrupt, revision, revision
		had = s.forgetLabels()
	})
	if had {
		s.indexLabels()
	}
	s.recent = eventLog{floor: revision, bounds: s.recent.bounds}
	s.watchers.each(func(w *Watcher) {
		if w.after < revision {
			s.watchers.remove(w)
			w.end(&sqlstore.CompactedError{Revision: w.after, Floor: revision})
		}
	})
}

// loading is the items of a revision, while several goroutines read the rows.
type loading struct {
	cache  *Cache
	afresh bool // use no item that is in memory again
	mu     sync.Mutex
	found  map[*resource]*loaded
}

// posting is an entry for an index that is made of all entries together. Equal terms share memory, so that they can be grouped.
type posting struct {
	term unique.Handle[term]
	item *Item
}

// loaded is the items of one resource, with the entries of their fields.
type loaded struct {
	of      *resource
	keys    *[]string // posting keys of entries
	all     []*Item
	entries []posting
	ordered int // that many of all, the first ones, came in key order, and share labels with their neighbours

	items   *items
	index   *postings
	corrupt map[[2]string]*Item // the corrupt ones of items, by namespace and name
}

// inOrder reports whether nearly all items arrived in key order: then the trees insert the others without sorting.
func (r *loaded) inOrder() bool { return r.ordered > len(r.all)/64*63 }

// take makes the items of some rows.
func (l *loading) take(rows []sqlstore.Row) error {
	var room loadBuffers
	var entries []posting
	made := make([]*Item, len(rows))
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Key.Resource == rows[0].Key.Resource {
			n++
		}
		s := l.cache.resource(rows[0].Key.Resource)
		keys := s.keys.Load()
		terms := fieldTerms(*keys)
		entries = entries[:0]
		for i := range rows[:n] {
			made[i] = s.item(&rows[i], &room, l.afresh, func(it *Item) {
				if len(*keys) > 0 {
					terms(it, func(t term) { entries = append(entries, posting{unique.Make(t), it}) })
				}
			})
		}
		l.add(s, keys, made[:n], entries)
		rows, made = rows[n:], made[n:]
	}
	return nil
}

// takeDamaged returns take with a check that marks the rows of differ as damaged, and lost, which takes those of differ that
// were not read.
func (l *loading) takeDamaged(differ []sqlstore.Row, revision int64) (take func(rows []sqlstore.Row) error, lost func() error) {
	var mu sync.Mutex
	damaged := make(map[int64]sqlstore.Row, len(differ))
	found := map[int64]bool{}
	for i := range differ {
		if differ[i].Revision <= revision && differ[i].Superseded == 0 {
			damaged[differ[i].Revision] = differ[i]
		}
	}
	take = func(rows []sqlstore.Row) error {
		for i := range rows {
			if d, ok := damaged[rows[i].Revision]; ok {
				rows[i].Damaged = d.Damaged
				mu.Lock()
				found[rows[i].Revision] = true
				mu.Unlock()
			}
		}
		return l.take(rows)
	}
	return take, func() error {
		for revision, row := range damaged {
			if !found[revision] {
				if err := l.take([]sqlstore.Row{row}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// add adds items of one resource, and makes a shape of them if necessary.
func (l *loading) add(s *resource, keys *[]string, some []*Item, entries []posting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.found[s]
	if to == nil {
		to = &loaded{of: s, keys: keys}
		l.found[s] = to
	}
	if to.keys != keys { // the catalogue has other fields now: the index is made at the end
		to.keys = nil
	}
	to.all, to.entries = append(to.all, some...), append(to.entries, entries...)
	s.train(to.all)
}

// begin adds items of one resource that are in key order, before others.
func (l *loading) begin(with *loaded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to := l.found[with.of]; to != nil { // a cache file has each resource once, unless it is damaged
		to.all, to.entries = append(to.all, with.all...), append(to.entries, with.entries...)
		return
	}
	with.ordered = len(with.all)
	l.found[with.of] = with
	with.of.train(with.all)
}

// sort sorts the items and fills the trees, on all processors, the largest first.
func (l *loading) sort() {
	type work struct {
		size int
		do   func()
	}
	var todo []work
	for _, r := range l.found {
		inOrder := r.inOrder() // before order drops all
		todo = append(todo, work{len(r.all), r.order}, work{len(r.entries), func() { r.enter(inOrder) }})
	}
	sort.Slice(todo, func(i, j int) bool { return todo[i].size > todo[j].size })
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(todo)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(todo)); i = next.Add(1) - 1 {
				todo[i].do()
			}
		})
	}
	workers.Wait()
}

// order fills the tree of items.
func (r *loaded) order() {
	r.items = newItems()
	if r.inOrder() {
		for _, it := range r.all {
			r.load(it)
		}
	} else {
		r.sort()
	}
	r.items, r.all = compactTree(r.items), nil
}

func (r *loaded) sort() {
	there, _, _ := r.of.extent()
	again := there > 0 // readers may have some of the items already
	var all packing.Interner
	for _, some := range grouped(r.all, func(it *Item) (string, *Item) { return it.Namespace, it }, strings.Compare) {
		slices.SortFunc(some, compareKeys)
		for _, it := range some {
			if b := it.body.Load(); !again && b.common != nil {
				b.common = all.Intern(b.common) // rows came in the order of revisions, so neighbours meet only here
			}
			r.load(it)
		}
	}
}

func (r *loaded) load(it *Item) {
	if it.Err() != nil {
		if r.corrupt == nil {
			r.corrupt = map[[2]string]*Item{}
		}
		r.corrupt[[2]string{it.Namespace, it.Name}] = it
	}
	r.items.Load(it)
}

// enter fills the index. inOrder means that the entries of each term came in key order.
func (r *loaded) enter(inOrder bool) {
	r.index = newPostings()
	for of, some := range grouped(r.entries, func(p posting) (unique.Handle[term], *Item) { return p.term, p.item }, compareTerms) {
		if !inOrder {
			slices.SortFunc(some, compareKeys)
		}
		t := of.Value() // its strings are no views
		t.key = unique.Make(t.key).Value()
		r.index.load(&t, some) // a handle takes five times as much as a term
	}
	r.index.filled()
	r.entries = nil
}

func compareTerms(a, b unique.Handle[term]) int { return a.Value().compare(b.Value()) }

// grouped yields the items of elements by a key with few values, in its order. Sorting each group takes a fraction of the time
// of sorting all, because the compared items are close together in memory.
func grouped[E any, K comparable](all []E, split func(E) (K, *Item), compare func(a, b K) int) iter.Seq2[K, []*Item] {
	at := map[K]int32{}
	var keys []K
	var sizes []int
	of := make([]int32, len(all))
	for i, e := range all {
		k, _ := split(e)
		n, known := at[k]
		if !known {
			n = int32(len(keys))
			at[k], keys, sizes = n, append(keys, k), append(sizes, 0)
		}
		of[i] = n
		sizes[n]++
	}
	room := make([]*Item, len(all))
	groups := make([][]*Item, len(keys))
	for n, size := range sizes {
		groups[n], room = room[:0:size], room[size:]
	}
	for i, e := range all {
		_, it := split(e)
		groups[of[i]] = append(groups[of[i]], it)
	}
	slices.SortFunc(keys, compare)
	return func(yield func(K, []*Item) bool) {
		for _, k := range keys {
			if !yield(k, groups[at[k]]) {
				return
			}
		}
	}
}
