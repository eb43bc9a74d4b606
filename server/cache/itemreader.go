package cache

import (
	"sync"
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
	meta  []byte
	terms map[string]*fieldHandles // by posting key
}

// fieldHandles are recent terms of an indexed field.
type fieldHandles struct {
	key    string
	shared *sharedValues
	known  map[string]fieldHandle // by value
}

// fieldHandle is a term of a field, and the number of its value.
type fieldHandle struct {
	handle unique.Handle[term]
	number int
}

// maxHandles bounds the handles of a field that a goroutine has for itself.
const maxHandles = 1 << 14

// handles returns the handles of a field.
func (r *readBuffers) handles(key string, shared *sharedValues) *fieldHandles {
	if r.terms == nil {
		r.terms = map[string]*fieldHandles{}
	}
	if r.terms[key] == nil {
		r.terms[key] = &fieldHandles{key, shared, map[string]fieldHandle{}}
	}
	return r.terms[key]
}

// of returns the handle of a value, which may be a view.
func (h *fieldHandles) of(value string) fieldHandle {
	if known, ok := h.known[value]; ok {
		return known
	}
	if len(h.known) == maxHandles {
		clear(h.known)
	}
	made := h.shared.of(term{h.key, value})
	h.known[made.handle.Value().value] = made
	return made
}

// sharedValues numbers the values of indexed fields while a file is read: the metadata of objects has the numbers.
type sharedValues struct {
	mu    sync.Mutex
	list  metadata.Shared
	known map[term]fieldHandle
}

// of returns the handle of a term, whose strings may be views.
func (s *sharedValues) of(t term) fieldHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.known[t]
	if !ok {
		if s.known == nil {
			s.known = map[term]fieldHandle{}
		}
		made = fieldHandle{unique.Make(t), len(s.list)}
		t = made.handle.Value()
		s.list, s.known[t] = append(s.list, t.value), made
	}
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

// textSize is about how many bytes of names and metadata share memory, which lives as long as one of their items: a size class of the
// allocator.
const textSize = 4 << 10

// own gives items names and metadata of their own, those of neighbors as parts of one string: one object for the garbage
// collector instead of many. The metadata has the numbers that number returns for values of fields, unless it is nil.
func (r *readBuffers) own(items []*Item, number func(field int, value string) (int, bool)) {
	for len(items) > 0 {
		r.text = r.text[:0]
		n := 0
		for ; n < len(items); n++ {
			before := len(r.text)
			r.text = append(r.text, items[n].Name...)
			meta := items[n].body.Load().meta()
			if number != nil {
				r.meta = metadata.AppendShared(r.meta[:0], meta, nil, number)
				meta = r.meta
			}
			r.text = packing.AppendText(r.text, packing.View(meta))
			if len(r.text) > textSize && n > 0 {
				r.text = r.text[:before]
				break
			}
		}
		left := string(r.text)
		for _, it := range items[:n] {
			b := it.body.Load()
			it.Name, left = left[:len(it.Name)], left[len(it.Name):]
			b.data = unsafe.StringData(left)
			_, end := packing.TextAt(b.data, 0)
			left = left[end:]
		}
		items = items[n:]
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
