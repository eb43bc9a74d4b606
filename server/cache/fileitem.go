package cache

import (
	"slices"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/cache/packing"
)

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
	fields, ok := readMeta(o.Data[:o.Split], o.Size, fields)
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

// readMeta checks what unpackMeta will read, of an object of so many bytes, and returns the values
// of the fields.
func readMeta(b []byte, size int, fields []string) (_ []string, ok bool) {
	c := packing.NewCursor(b)
	c.Number() // flags
	from, to, n := c.Number(), c.Number(), c.Number()
	c.Bytes() // UID
	c.Bytes() // creation
	if fields = fields[:0]; n > uint64(len(b)) {
		return nil, false
	}
	for range n {
		fields = append(fields, c.Text())
	}
	return fields, !c.Bad && c.Left() == 0 && from <= to && to <= uint64(size)
}
