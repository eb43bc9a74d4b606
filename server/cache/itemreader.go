package cache

import (
	"slices"
	"unique"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/cache/metadata"
)

// readRoom is memory for reading one block after the other.
type readRoom struct {
	block []byte
	names []byte
	ends  []int
	terms map[string]fieldHandles // by posting key
}

// fieldHandles are recent terms of a field, by value.
type fieldHandles map[string]unique.Handle[term]

// mostHandles bounds the handles of a field. A look-up in the map costs a third of one in package unique, but saves nothing for
// a field whose values are all different.
const mostHandles = 1 << 14

// handles returns the handles of a field.
func (r *readRoom) handles(key string) fieldHandles {
	if r.terms == nil {
		r.terms = map[string]fieldHandles{}
	}
	if r.terms[key] == nil {
		r.terms[key] = fieldHandles{}
	}
	return r.terms[key]
}

// handle returns the handle of a term, whose value may be a view.
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

// itemReader makes items of the objects of a block. They keep no part of the block.
type itemReader struct {
	of     *resource
	shapes []*shape // by dictionary
	left   file.Objects
	object file.Object
	names  []byte // of the objects, one after the other
	ends   []int  // of each in names
}

// next makes an item without its name, which name sets. It returns the values of the selectable fields, if known, as views of
// the block, in the memory of fields.
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

// name sets the names of the items, all as parts of one string: one object for the garbage collector instead of a thousand. An
// item that outlives the others keeps the names of its block alive.
func (r *itemReader) name(items []*Item) {
	all, from := string(r.names), 0
	for i, it := range items {
		it.Name, from = all[from:r.ends[i]], r.ends[i]
	}
}

// itemAndBody is an item with its first body: one object for the garbage collector instead of two.
type itemAndBody struct {
	item Item
	body body
}

// packed fills the body of a packed object, after checking everything that reading it relies on.
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
