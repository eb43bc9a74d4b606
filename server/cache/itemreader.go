package cache

import (
	"slices"
	"unique"
	"unsafe"

	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
)

// readBuffers is memory for reading one block after the other.
type readBuffers struct {
	block []byte
	text  []byte
	terms map[string]fieldHandles // by posting key
}

// fieldHandles are recent terms of a field, by value.
type fieldHandles map[string]unique.Handle[term]

// maxHandles bounds the handles of a field. A look-up in the map costs a third of one in package unique, but saves nothing for
// a field whose values are all different.
const maxHandles = 1 << 14

// handles returns the handles of a field.
func (r *readBuffers) handles(key string) fieldHandles {
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
	if len(h) == maxHandles {
		clear(h)
	}
	made := unique.Make(t)
	h[made.Value().value] = made
	return made
}

// itemReader makes items of the objects of a block.
type itemReader struct {
	of     *resource
	shapes []*shape // by dictionary
	left   file.Objects
	object file.Object
}

// next makes an item whose name and metadata are views of the block until own is called. It returns the values of the
// selectable fields, if known, as views of the block, in the memory of fields.
func (r *itemReader) next(fields []string) (it *Item, _ []string, err error) {
	o := &r.object
	if err := r.left.Next(o); err != nil {
		return nil, nil, err
	}
	both := &itemAndBody{item: Item{Namespace: o.Namespace, Name: o.Name, Revision: o.Revision}}
	it = &both.item
	it.bits.Store(uint32(o.Head))
	if fields, err = r.packed(&both.body, fields); err != nil {
		return nil, nil, err
	}
	it.body.Store(&both.body)
	it.setCreated(o.Created)
	return it, fields, nil
}

// together is the number of items that share memory for their names and metadata, which live as long as one of the items.
const together = 32

// own gives items names and metadata of their own, those of neighbors as parts of one string: one object for the garbage
// collector instead of many.
func (r *readBuffers) own(items []*Item) {
	for some := range slices.Chunk(items, together) {
		r.text = r.text[:0]
		for _, it := range some {
			r.text = append(r.text, it.Name...)
			r.text = packing.AppendText(r.text, packing.View(it.body.Load().meta()))
		}
		left := string(r.text)
		for _, it := range some {
			b := it.body.Load()
			it.Name, left = left[:len(it.Name)], left[len(it.Name):]
			b.data = unsafe.StringData(left)
			_, end := packing.TextAt(b.data, 0) // a file may have stated the length in more bytes
			left = left[end:]
		}
	}
}

// itemAndBody is an item with its first body: one object for the garbage collector instead of two.
type itemAndBody struct {
	item Item
	body body
}

// packed fills the body of an object, after checking everything that reading it relies on, but for its value.
func (r *itemReader) packed(b *body, fields []string) ([]string, error) {
	o := &r.object
	if o.Dictionary >= len(r.shapes) || o.Head > maxHead {
		return nil, file.ErrForm
	}
	with := r.shapes[o.Dictionary]
	fields, ok := metadata.CheckPacked(o.Meta, o.Size, fields)
	st := with.storage
	if !ok || st != nil && len(fields) != len(st.Fields) {
		return nil, file.ErrForm
	}
	b.data, b.size, b.common, b.at = o.MetaAt, int32(o.Size), o.Common, o.At
	b.derived.Store(&with.none)
	if st == nil {
		return nil, nil
	}
	return fields, nil
}
