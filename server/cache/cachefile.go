package cache

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"unique"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Loaded says where the objects of a load came from.
type Loaded struct {
	Revision           int64
	FromFile, FromRows int
}

// LoadFile is Load, of what is live among the objects of a cache file and, from the database, of what is not in
// it. An error that is none of the database's is the file's: then Load is to be called.
func (c *Cache) LoadFile(ctx context.Context, s Source, from sqlstore.Attestor, p *file.File) (done Loaded, err error) {
	if done.Revision, err = s.Head(ctx); err != nil {
		return done, err
	}
	c.rows.Store(&from)
	r := &fileLoading{loading: loading{cache: c, found: map[*resource]*loaded{}}, file: p}
	if err := r.resources(); err != nil {
		return done, err
	}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return r.revisions(within, from, done.Revision) })
	group.Go(func() error { return r.blocks(within) })
	if err := group.Wait(); err != nil {
		return done, err
	}
	r.keep()
	rest := r.live.Left()
	done.FromFile = r.gather(len(rest))
	if err := from.ReadRows(ctx, rest, r.take); err != nil {
		return done, err
	}
	done.FromRows = len(rest)
	r.sort()
	c.replace(r.found, done.Revision)
	c.publish(done.Revision)
	return done, nil
}

// fileLoading reads a cache file, and beside it which rows are live.
type fileLoading struct {
	loading
	file *file.File
	of   []*fileResource // by resource; nil: it is not read from the file
	made []madeBlock
	live file.Revisions
}

// fileResource is what it takes to read objects of a resource.
type fileResource struct {
	s      *resource
	keys   *[]string
	shapes []*shape
}

// madeBlock is the objects of a block, with the entries of their fields.
type madeBlock struct {
	items   []*Item
	entries []posting
}

// resources gets ready for what the file has objects of. What the catalogue has other fields of
// is read from the database.
func (r *fileLoading) resources() error {
	for _, a := range r.file.Directory.Resources {
		s := r.cache.resource(a.Name)
		st := s.storage.Load()
		if s.internal || st != nil && !slices.Equal(a.Fields, fieldLabels(st)) {
			r.of = append(r.of, nil)
			continue
		}
		of := &fileResource{s: s, keys: s.keys.Load()}
		for _, b := range a.Dictionaries {
			d := dictionary.Parse(b)
			if d == nil {
				return fmt.Errorf("%w: a dictionary of %s", blockfile.ErrDamaged, a.Name)
			}
			of.shapes = append(of.shapes, &shape{storage: st, objects: &packing.Codec{Dictionary: d}})
		}
		if n := len(of.shapes); n > 0 {
			s.packer.adopt(of.shapes[n-1])
		}
		r.of = append(r.of, of)
	}
	return nil
}

// adopt has objects be packed as those of a file were.
func (p *packer) adopt(of *shape) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects.With == nil {
		p.shapes++
		of.number = p.shapes
		p.objects, p.shape = packing.Learner{With: of.objects}, of
	}
}

// revisions finds out which revisions are live.
func (r *fileLoading) revisions(ctx context.Context, from sqlstore.Attestor, revision int64) error {
	var splits []sqlstore.Key
	for _, b := range r.file.Directory.Blocks {
		splits = append(splits, sqlstore.Key{Resource: r.file.Directory.Resources[b.Resource].Name, Namespace: b.Namespace, Name: b.Name})
	}
	slices.SortFunc(splits, sqlstore.Key.Compare)
	if err := from.ListRevisions(ctx, revision, splits, func(piece []int64) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.live.Add(piece)
		return nil
	}); err != nil {
		return err
	}
	return nil
}

// readRoom is what reading one block after the other needs, and remembers.
type readRoom struct {
	block []byte
	names []byte
	ends  []int
	terms map[string]fieldHandles // by posting key
}

// fieldHandles are the terms of a field that were met last, by its values.
type fieldHandles map[string]unique.Handle[term]

// mostHandles is how many are kept: finding one in a map of its own costs a third of asking package unique, and
// of a field that tells each object from all others that saves nothing.
const mostHandles = 1 << 14

// handles are those of a field.
func (r *readRoom) handles(key string) fieldHandles {
	if r.terms == nil {
		r.terms = map[string]fieldHandles{}
	}
	if r.terms[key] == nil {
		r.terms[key] = fieldHandles{}
	}
	return r.terms[key]
}

// handle finds the one of a value, which may be a view.
func (h fieldHandles) handle(t term) unique.Handle[term] {
	if known, ok := h[t.value]; ok {
		return known
	}
	if len(h) == mostHandles {
		clear(h)
	}
	made := unique.Make(t)
	h[made.Value().value] = made
	return made
}

// each calls fn for each block, on all processors.
func (r *fileLoading) each(ctx context.Context, fn func(i int, room *readRoom) error) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			var room readRoom
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(r.file.Directory.Blocks) {
					return nil
				}
				if err := fn(i, &room); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// blocks makes the objects of all blocks, live or not.
func (r *fileLoading) blocks(ctx context.Context) error {
	r.made = make([]madeBlock, len(r.file.Directory.Blocks))
	return r.each(ctx, func(i int, room *readRoom) (err error) {
		at := &r.file.Directory.Blocks[i]
		of := r.of[at.Resource]
		if of == nil {
			return nil
		}
		if room.block, err = r.file.Block(i, room.block); err == nil {
			r.made[i], err = of.make(room, at.Objects)
		}
		return err
	})
}

// make makes the objects of a block, which lies in room.
func (of *fileResource) make(room *readRoom, count int) (made madeBlock, err error) {
	if count < 0 || count > len(room.block) {
		return made, file.ErrForm
	}
	reader := itemReader{of: of.s, shapes: of.shapes, left: file.NewObjects(room.block), names: room.names[:0], ends: room.ends[:0]}
	terms := fieldTerms(*of.keys)
	var handles []fieldHandles
	for _, key := range *of.keys {
		handles = append(handles, room.handles(key))
	}
	indexed := len(slices.DeleteFunc(slices.Clone(*of.keys), func(key string) bool { return key == "" }))
	made.items, made.entries = make([]*Item, 0, count), make([]posting, 0, count*indexed)
	var fields []string
	for range count {
		it, values, err := reader.next(fields)
		if err != nil {
			return made, err
		}
		made.items = append(made.items, it)
		enter := func(t term) { made.entries = append(made.entries, posting{unique.Make(t), it}) }
		switch {
		case len(*of.keys) == 0:
		case values == nil:
			terms(it, enter)
		default:
			for i, key := range *of.keys {
				if key != "" {
					made.entries = append(made.entries, posting{handles[i].handle(term{key, values[i]}), it})
				}
			}
		}
		if values != nil {
			fields = values
		}
	}
	if reader.left.Left() {
		return made, file.ErrForm
	}
	reader.name(made.items)
	room.names, room.ends = reader.names, reader.ends
	return made, nil
}

// keep drops those of the file's objects that are not live, and each that was there before.
func (r *fileLoading) keep() {
	_ = r.each(context.Background(), func(i int, _ *readRoom) error {
		made := &r.made[i]
		if len(made.items) == 0 {
			return nil
		}
		of := r.of[r.file.Directory.Blocks[i].Resource]
		before := len(made.items)
		made.items = slices.DeleteFunc(made.items, func(it *Item) bool { return !r.live.Take(it.Revision) })
		if len(made.items) < before {
			left := make(map[*Item]bool, len(made.items))
			for _, it := range made.items {
				left[it] = true
			}
			made.entries = slices.DeleteFunc(made.entries, func(p posting) bool { return !left[p.item] })
		}
		for _, it := range made.items {
			if b := it.body.Load(); !b.packed() {
				of.s.plain.Grow(len(b.data))
			}
		}
		return nil
	})
}

// gather takes what keep left in the order of the blocks, which is that of keys, and says how many that are. So many more
// will come.
func (r *fileLoading) gather(more int) (n int) {
	blocks := r.file.Directory.Blocks
	for from := 0; from < len(blocks); {
		items, entries, to := 0, 0, from
		for ; to < len(blocks) && blocks[to].Resource == blocks[from].Resource; to++ {
			items, entries = items+len(r.made[to].items), entries+len(r.made[to].entries)
		}
		if items > 0 {
			of := r.of[blocks[from].Resource]
			all := loaded{of: of.s, keys: of.keys, all: make([]*Item, 0, items+min(more, items)), entries: make([]posting, 0, entries+min(more, entries))}
			for i := from; i < to; i++ {
				all.all, all.entries = append(all.all, r.made[i].items...), append(all.entries, r.made[i].entries...)
				r.made[i] = madeBlock{}
			}
			r.begin(&all)
		}
		n, from = n+items, to
	}
	return n
}

// itemReader makes items of the objects of a block, which is lent: items have memory of their own.
type itemReader struct {
	of     *resource
	shapes []*shape // by dictionary
	left   file.Objects
	object file.Object
	names  []byte // of the objects, one behind the other
	ends   []int  // of each in names
}

// next makes an item, whose name is for name to give. fields are the values of its selectable fields, where
// they are known; they are views of the block.
func (r *itemReader) next(fields []string) (it *Item, _ []string, err error) {
	o := &r.object
	if err := r.left.Next(o); err != nil {
		return nil, nil, err
	}
	r.names = append(r.names, o.Name...)
	r.ends = append(r.ends, len(r.names))
	both := &itemAndBody{item: Item{Namespace: o.Namespace, Revision: o.Revision, Created: o.Created, head: int32(o.Head), home: &r.of.home}}
	it = &both.item
	it.body.Store(&both.body)
	if !o.Packed {
		both.body.data = slices.Clone(o.Data)
		return it, nil, nil
	}
	if fields, err = r.packed(&both.body, fields); err != nil {
		return nil, nil, err
	}
	return it, fields, nil
}

// name gives the objects that were read their names, all in one text: that is one piece of memory for the collector
// instead of a thousand, and what one object that stays can hold is what the names of a block take.
func (r *itemReader) name(items []*Item) {
	all, from := string(r.names), 0
	for i, it := range items {
		it.Name, from = all[from:r.ends[i]], r.ends[i]
	}
}

// itemAndBody is an item and the body that it begins with: one piece of memory for the collector instead of two.
type itemAndBody struct {
	item Item
	body body
}

// packed fills the body of an object that lies packed, once what reading it relies on is so.
func (r *itemReader) packed(b *body, fields []string) ([]string, error) {
	o := &r.object
	if o.Dictionary >= len(r.shapes) {
		return nil, file.ErrForm
	}
	if n, err := dictionary.Size(o.Data[o.Split:]); err != nil || n != o.Size+1 {
		return nil, file.ErrForm
	}
	with := r.shapes[o.Dictionary]
	fields, ok := metadata.CheckPacked(o.Data[:o.Split], o.Size, fields)
	st := with.storage
	if !ok || st != nil && len(fields) != len(st.Fields) {
		return nil, file.ErrForm
	}
	b.data, b.with, b.size, b.split, b.common = slices.Clone(o.Data), with, int32(o.Size), int32(o.Split), o.Common
	if st == nil {
		return nil, nil
	}
	return fields, nil
}

// WriteFile writes the live objects to a cache file, as they lie in memory, beside readers and writers. It needs
// a block's memory, and holds the states that it is writing. What cannot be read, and the
// server's own rows, are left out.
func (c *Cache) WriteFile(ctx context.Context, cfg *file.Config) (done file.Written, err error) {
	w, err := file.Create(ctx, cfg)
	if err != nil {
		return done, fmt.Errorf("writing a cache file: %w", err)
	}
	defer w.Discard()
	for _, key := range c.Storages() {
		if s := c.resource(key); !s.internal && !cfg.Leave(key) {
			if err := s.write(w); err != nil {
				return done, fmt.Errorf("writing a cache file, %s: %w", key, err)
			}
		}
	}
	if done, err = w.Finish(); err != nil {
		return done, fmt.Errorf("writing a cache file: %w", err)
	}
	return done, nil
}

func (s *resource) write(w *file.Writer) error {
	if err := w.Begin(s.key, fieldLabels(s.storage.Load())); err != nil {
		return err
	}
	var err error
	s.state().items.Scan(func(it *Item) bool {
		b := it.body.Load()
		if it.Corrupt != nil || b.bare() {
			return true
		}
		o := file.Object{Namespace: it.Namespace, Name: it.Name, Revision: it.Revision, Created: it.Created, Head: int(it.head), Data: b.data}
		if b.packed() {
			o.With, o.Size, o.Split, o.Common = b.with.objects, int(b.size), int(b.split), b.common
		}
		err = w.Add(&o)
		return err == nil
	})
	return err
}

// fieldLabels are those of a storage's selectable fields.
func fieldLabels(st *kinds.Storage) (labels []string) {
	if st != nil {
		for _, f := range st.Fields {
			labels = append(labels, f.Label)
		}
	}
	return labels
}
