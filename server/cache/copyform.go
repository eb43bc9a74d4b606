package cache

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unique"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
)

// A copy is a blockfile of objects as memory has them, for the next start. Each block has objects of one
// resource, in key order; what it takes to read them is in about. A reader trusts none of it
// further than its checks go: damage is the end of the copy, and never of the process.

// about is what a copy says before its blocks, as JSON.
type about struct {
	Maker     string // the program that wrote it; another one might have packed or judged objects otherwise
	Resources []aboutResource
	Blocks    []aboutBlock
}

type aboutResource struct {
	Name         string
	Fields       []string // labels of the selectable fields, whose values lie in the metadata
	Dictionaries [][]byte
}

type aboutBlock struct {
	Resource        int
	Objects         int
	Namespace, Name string // of the first
}

// What an object in a block begins with.
const (
	copyPacked        = 1 << iota // it lies packed, and not as a line
	copySameNamespace             // as the one before
)

// copyBlock is about how many bytes of objects a block has.
const copyBlock = 1 << 20

// fieldLabels are those of a storage's selectable fields.
func fieldLabels(st *kinds.Storage) (labels []string) {
	if st != nil {
		for _, f := range st.Fields {
			labels = append(labels, f.Label)
		}
	}
	return labels
}

// copyRecord appends an item, as it lies in body b. before is the one before it in the block.
func copyRecord(dst []byte, it *Item, b *body, dictionary int, before *copyBefore) []byte {
	at := len(dst)
	dst = append(dst, 0)
	flags := byte(0)
	if it.Namespace == before.namespace && before.any {
		flags |= copySameNamespace
	} else {
		dst = packing.AppendText(dst, it.Namespace)
	}
	dst = packing.AppendText(dst, it.Name)
	dst = binary.AppendUvarint(dst, uint64(it.Revision))
	dst = binary.AppendUvarint(dst, uint64(it.Created))
	dst = binary.AppendUvarint(dst, uint64(it.head))
	if b.packed() {
		flags |= copyPacked
		for _, n := range [...]int{dictionary, int(b.size), int(b.split)} {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		dst = before.near.Record(dst, b.common)
	}
	dst = packing.AppendText(dst, packing.View(b.data))
	dst[at] = flags
	before.namespace, before.any = it.Namespace, true
	return dst
}

// copyBefore is what an object may have in common with the one before it.
type copyBefore struct {
	namespace string
	any       bool // there is one
	near      packing.Neighbors
}

// copyReader reads the objects of a block, which is lent: items have memory of their own.
type copyReader struct {
	of     *resource
	shapes []*shape // by dictionary
	left   packing.Cursor
	before copyBefore
	names  []byte // of the objects, one behind the other
	ends   []int  // of each in names
}

// next reads an object, whose name is for name to give. fields are the values of its selectable fields, where
// they are known; they are views of the block.
func (r *copyReader) next(fields []string) (it *Item, _ []string, err error) {
	c := &r.left
	flags := c.Byte()
	if flags&copySameNamespace == 0 {
		r.before.namespace = unique.Make(c.Text()).Value()
	}
	r.names = append(r.names, c.Bytes()...)
	r.ends = append(r.ends, len(r.names))
	both := &itemAndBody{item: Item{Namespace: r.before.namespace, home: &r.of.home}}
	it = &both.item
	it.body.Store(&both.body)
	it.Revision, it.Created, it.head = int64(c.Number()), int64(c.Number()), int32(c.Number())
	if c.Bad || it.Revision <= 0 || it.Created < 0 || it.Created > it.Revision || it.head < 0 {
		return nil, nil, errCopyForm
	}
	if flags&copyPacked == 0 {
		return it, nil, r.plain(both)
	}
	if fields, err = r.packed(both, fields); err != nil {
		return nil, nil, err
	}
	return it, fields, nil
}

// name gives the objects that were read their names, all in one text: that is one piece of memory for the collector
// instead of a thousand, and what one object that stays can hold is what the names of a block take.
func (r *copyReader) name(items []*Item) {
	all, from := string(r.names), 0
	for i, it := range items {
		it.Name, from = all[from:r.ends[i]], r.ends[i]
	}
}

var errCopyForm = fmt.Errorf("%w: an object in it has another form", blockfile.ErrDamaged)

// itemAndBody is an item and the body that it begins with: one piece of memory for the collector instead of two.
type itemAndBody struct {
	item Item
	body body
}

func (r *copyReader) plain(to *itemAndBody) error {
	line := r.left.Bytes()
	if r.left.Bad || len(line) < 2 || line[len(line)-1] != '\n' || int(to.item.head) >= len(line) {
		return errCopyForm
	}
	to.body.data = slices.Clone(line)
	return nil
}

func (r *copyReader) packed(to *itemAndBody, fields []string) ([]string, error) {
	c := &r.left
	of, size, split := c.Number(), c.Number(), c.Number()
	common, known := r.before.near.Read(c)
	data := c.Bytes()
	if c.Bad || !known || of >= uint64(len(r.shapes)) || size >= blockfile.MostBlock || split >= uint64(len(data)) || int(to.item.head) > int(size) {
		return nil, errCopyForm
	}
	if n, err := dictionary.Size(data[split:]); err != nil || n != int(size)+1 {
		return nil, errCopyForm
	}
	fields, ok := readMeta(data[:split], int(size), fields)
	st := r.shapes[of].storage
	if !ok || st != nil && len(fields) != len(st.Fields) {
		return nil, errCopyForm
	}
	b := &to.body
	b.data, b.with, b.size, b.split, b.common = slices.Clone(data), r.shapes[of], int32(size), int32(split), common
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
