package cache

import (
	"context"
	"fmt"

	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/cache/values"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// WriteFile writes the live objects to a cache file while readers and writers go on, and drops the packed values from memory:
// they are read from the file from then on, or from their rows in the database that attests to the file. It needs the memory of
// some blocks and of a place for each object, and keeps the state alive that it writes. It leaves out corrupt objects and the
// server's own rows. After an error everything stays where it was.
func (c *Cache) WriteFile(ctx context.Context, cfg *file.Config, from sqlstore.Attestor) (done file.Written, err error) {
	w, err := file.Create(ctx, cfg)
	if err != nil {
		return done, fmt.Errorf("writing a cache file: %w", err)
	}
	defer w.Discard()
	f := &cacheFileWrite{to: w, values: &values.File{}}
	for _, key := range c.Storages() {
		if s := c.resource(key); !s.internal && !cfg.Leave(key) {
			if err := f.write(s); err != nil {
				return done, fmt.Errorf("writing a cache file, %s: %w", key, err)
			}
		}
	}
	done, written, err := w.Finish()
	if err != nil {
		return done, fmt.Errorf("writing a cache file: %w", err)
	}
	c.rows.Store(&from)
	f.values.Open(written, c.pages)
	f.move()
	return done, nil
}

// cacheFileWrite writes the objects of one resource after the other.
type cacheFileWrite struct {
	to     *file.Writer
	values *values.File // once it is written
	of     *writtenResource
	all    []*writtenResource
	room   packBuffers
	line   []byte
	meta   []byte
	object file.Object
}

// writtenResource is the objects of a resource that are in the file.
type writtenResource struct {
	s       *resource
	storage *kinds.Storage
	lines   *shape // of objects that are not packed
	filed   []writtenItem
	plain   map[*Item]*body // bodies of those that were plain
	shapes  map[shapeKey]*shape
}

// shapeKey identifies a shape of a file and a resource, by that of the metadata.
type shapeKey struct {
	objects *packing.Codec
	meta    *shape
}

// writtenItem is an item in the file.
type writtenItem struct {
	item *Item
	with *packing.Codec
	at   values.Location
}

func (f *cacheFileWrite) write(s *resource) error {
	f.of = &writtenResource{s: s, storage: s.storage.Load(), plain: map[*Item]*body{}, shapes: map[shapeKey]*shape{}}
	f.of.lines = &shape{storage: f.of.storage}
	f.all = append(f.all, f.of)
	if err := f.to.Begin(s.key, fieldLabels(f.of.storage)); err != nil {
		return err
	}
	var err error
	s.state().items.Scan(func(it *Item) bool {
		err = f.add(it)
		return err == nil
	})
	return err
}

// add writes an item, unless it cannot be read.
func (f *cacheFileWrite) add(it *Item) error {
	b := it.body.Load()
	if it.Err() != nil || b.bare() {
		return nil
	}
	o := &f.object
	*o = file.Object{Namespace: it.Namespace, Name: it.Name, Revision: it.Revision, Created: it.Created(), Head: it.head()}
	known := b
	if !b.packed() && b.inFile() != nil {
		known = b.inFile() // it was packed once
	}
	if known.packed() && known.with().storage == f.of.storage && known.with().objects != nil {
		return f.addPacked(it, known)
	}
	if !b.packed() {
		return f.addLine(it, b.line())
	}
	var err error
	if f.line, err = it.tryLine(b, f.line[:0]); err != nil {
		return nil
	}
	return f.addLine(it, f.line)
}

// addPacked writes an item's packed body.
func (f *cacheFileWrite) addPacked(it *Item, b *body) error {
	o := &f.object
	with := b.with()
	o.With, o.Size, o.Meta, o.Common = with.objects, int(b.size), b.meta(), b.common
	if len(with.shared) > 0 {
		f.meta = metadata.AppendShared(f.meta[:0], o.Meta, with.shared, func(int, string) (int, bool) { return 0, false })
		o.Meta = f.meta
	}
	if with.values == nil {
		o.Value = b.value()
		return f.put(it)
	}
	value, page, err := with.values.Read(b.at)
	if err != nil { // it is read from its row
		if f.line, err = it.tryLine(b, f.line[:0]); err != nil {
			return nil
		}
		return f.addLine(it, f.line)
	}
	defer page.Release()
	o.Value = value
	return f.put(it)
}

// addLine packs and writes an item.
func (f *cacheFileWrite) addLine(it *Item, line []byte) error {
	m, err := metadata.Scan(line[:len(line)-1], f.of.storage)
	if err != nil {
		return nil // it is read from its row at the next start
	}
	b, o := &body{size: int32(len(line) - 1)}, &f.object
	o.Size, o.Meta = len(line)-1, f.room.about(b, m, line)
	o.Common, o.Value, o.With = b.common, line, nil
	if of := f.of.s.packer.known(); of != nil {
		if packed := of.objects.Pack(f.room.grow(len(line)), line); packed != nil {
			o.Value, o.With = packed, of.objects
		}
	}
	if err := f.put(it); err != nil {
		return err
	}
	b.data, b.at = packedData(o.Meta, nil), o.At
	b.derived.Store(&f.of.shape(o.With, f.of.lines, f.values).none)
	f.of.plain[it] = b
	return nil
}

func (f *cacheFileWrite) put(it *Item) error {
	if err := f.to.Add(&f.object); err != nil {
		return err
	}
	f.of.filed = append(f.of.filed, writtenItem{it, f.object.With, f.object.At})
	return nil
}

// shape returns the shape of objects in the file.
func (r *writtenResource) shape(objects *packing.Codec, meta *shape, in *values.File) *shape {
	key := shapeKey{objects, meta}
	if r.shapes[key] == nil {
		r.shapes[key] = (&shape{info: &r.s.storageInfo, storage: meta.storage, shared: meta.shared, objects: objects, values: in}).ready()
	}
	return r.shapes[key]
}

// move gives all items bodies whose values are in the file.
func (f *cacheFileWrite) move() {
	for _, r := range f.all {
		for _, p := range r.filed {
			for !f.moved(r, p) {
			}
		}
	}
}

// moved gives an item a body whose value is in the file. A plain body stays, and refers to the one in the file. It returns
// false if the item got another body meanwhile.
func (f *cacheFileWrite) moved(r *writtenResource, p writtenItem) bool {
	b := p.item.body.Load()
	known := b
	if !b.packed() {
		known = b.inFile()
	}
	made := r.plain[p.item]
	switch {
	case made != nil:
		made = made.again()
	case known == nil:
		return true // it was read from its row again
	default:
		made = known.again()
		made.derived.Store(&r.shape(p.with, known.with(), f.values).none)
		made.at = p.at
		if known.with().values == nil {
			made.data = packedData(known.meta(), nil) // else the value stays in memory
		}
	}
	if !b.packed() {
		b.keep().filed.Store(made)
		return p.item.body.Load() == b
	}
	made.like(b, b.message(), b.forms())
	return p.item.body.CompareAndSwap(b, made)
}
