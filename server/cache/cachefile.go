package cache

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync/atomic"
	"unique"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/cache/values"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Loaded counts the objects of a load by their source.
type Loaded struct {
	Revision           int64
	FromFile, FromRows int
}

// LoadFile is Load that takes the live objects from a cache file, and the others from the database. The values stay in the
// file, which LoadFile keeps open. After an error that is not the database's, the file is unusable and the caller calls Load.
func (c *Cache) LoadFile(ctx context.Context, s Source, from sqlstore.Attestor, p *file.File) (done Loaded, err error) {
	if done.Revision, err = s.Head(ctx); err != nil {
		return done, err
	}
	c.rows.Store(&from)
	r := &fileLoading{loading: loading{cache: c, found: map[*resource]*loaded{}}, file: p, values: &values.File{}}
	r.values.Open(p.Blocks(), c.pages)
	if err := r.resources(); err != nil {
		return done, err
	}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return r.revisions(within, from, done.Revision) })
	group.Go(func() error { return r.blocks(within) })
	if err := group.Wait(); err != nil {
		return done, err
	}
	r.share()
	r.keep()
	rest := r.live.Left()
	done.FromFile = r.gather(len(rest))
	if err := from.ReadRows(ctx, rest, r.take); err != nil {
		return done, err
	}
	done.FromRows = len(rest)
	r.sort()
	p.Keep()
	c.replace(r.found, done.Revision)
	c.publish(done.Revision)
	return done, nil
}

// fileLoading reads a cache file, and at the same time the revisions of the live rows.
type fileLoading struct {
	loading
	file   *file.File
	values *values.File
	of     []*fileResource // by resource; nil: not read from the file
	made   []madeBlock
	live   file.Revisions
	shared sharedValues
}

// fileResource holds the data for reading the objects of a resource.
type fileResource struct {
	s      *resource
	keys   *[]string
	shapes []*shape
	shared *sharedValues
}

// madeBlock is the objects of a block, with the entries of their fields.
type madeBlock struct {
	items   []*Item
	entries []posting
}

// resources prepares for the resources of the file. Those whose fields in the catalogue differ are read from the database.
func (r *fileLoading) resources() error {
	for _, a := range r.file.Directory.Resources {
		s := r.cache.resource(a.Name)
		st := s.storage.Load()
		if s.internal || st != nil && !slices.Equal(a.Fields, fieldLabels(st)) {
			r.of = append(r.of, nil)
			continue
		}
		of := &fileResource{s: s, keys: s.keys.Load(), shared: &r.shared, shapes: []*shape{(&shape{info: &s.storageInfo, storage: st, values: r.values}).ready()}}
		for _, b := range a.Dictionaries {
			d := dictionary.Parse(b)
			if d == nil {
				return fmt.Errorf("%w: a dictionary of %s", blockfile.ErrDamaged, a.Name)
			}
			of.shapes = append(of.shapes, (&shape{info: &s.storageInfo, storage: st, objects: &packing.Codec{Dictionary: d}, values: r.values}).ready())
		}
		if last := of.shapes[len(of.shapes)-1]; last.objects != nil {
			s.packer.adopt((&shape{info: &s.storageInfo, storage: st, objects: last.objects}).ready())
		}
		r.of = append(r.of, of)
	}
	return nil
}

// adopt makes the packer use the shape of a file's objects.
func (p *packer) adopt(of *shape) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects.With == nil {
		p.shapes++
		of.number = p.shapes
		p.objects, p.shape = packing.Trainer{With: of.objects}, of
	}
}

// revisions reads the live revisions.
func (r *fileLoading) revisions(ctx context.Context, from sqlstore.Attestor, revision int64) error {
	var splits []sqlstore.Key
	for _, b := range r.file.Directory.Blocks {
		splits = append(splits, sqlstore.Key{Resource: r.file.Directory.Resources[b.Resource].Name, Namespace: b.Namespace, Name: b.Name})
	}
	sort.Slice(splits, func(i, j int) bool { return splits[i].Compare(splits[j]) < 0 })
	return from.ListRevisions(ctx, revision, splits, func(piece []int64) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.live.Add(piece)
		return nil
	})
}

// each calls fn for each block, on all processors.
func (r *fileLoading) each(ctx context.Context, fn func(i int, room *readBuffers) error) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			var room readBuffers
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
	return r.each(ctx, func(i int, room *readBuffers) (err error) {
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

// make makes the objects of the block in room.
func (of *fileResource) make(room *readBuffers, count int) (made madeBlock, err error) {
	if count < 0 || count > len(room.block) {
		return made, file.ErrForm
	}
	reader := itemReader{of: of.s, shapes: of.shapes, left: file.NewObjects(room.block)}
	terms := fieldTerms(*of.keys)
	var handles []*fieldHandles
	for _, key := range *of.keys {
		handles = append(handles, room.handles(key, of.shared))
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
					made.entries = append(made.entries, posting{handles[i].of(values[i]).handle, it})
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
	if indexed == 0 {
		room.own(made.items, nil)
		return made, nil
	}
	room.own(made.items, func(field int, value string) (n int, ok bool) {
		if ok = field < len(handles) && handles[field].key != ""; ok {
			n = handles[field].of(value).number
		}
		return n, ok
	})
	return made, nil
}

// share gives the shapes the shared values, when all objects are made.
func (r *fileLoading) share() {
	list := slices.Clone(r.shared.list) // without spare room
	for _, of := range r.of {
		if of != nil {
			for _, s := range of.shapes {
				s.shared = list
			}
		}
	}
}

// keep drops the file's objects that are not live, and repeated ones.
func (r *fileLoading) keep() {
	_ = r.each(context.Background(), func(i int, _ *readBuffers) error {
		made := &r.made[i]
		before := len(made.items)
		made.items = slices.DeleteFunc(made.items, func(it *Item) bool { return !r.live.Take(it.Revision) })
		if len(made.items) < before {
			left := make(map[*Item]bool, len(made.items))
			for _, it := range made.items {
				left[it] = true
			}
			made.entries = slices.DeleteFunc(made.entries, func(p posting) bool { return !left[p.item] })
		}
		return nil
	})
}

// gather adds the objects that keep did not drop, in the order of the blocks, which is that of keys. It returns their number.
// more is the number of objects that the database will add.
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

// fieldLabels returns the labels of a storage's selectable fields.
func fieldLabels(st *kinds.Storage) (labels []string) {
	if st != nil {
		for _, f := range st.Fields {
			labels = append(labels, f.Label)
		}
	}
	return labels
}
