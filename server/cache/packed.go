package cache

import (
	"encoding/binary"
	"math"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
)

// shape is what the packed objects of a storage are packed with.
type shape struct {
	number  uint32         // of the storage's shapes, from 1
	storage *kinds.Storage // whose fields lie in the metadata
	objects *packing.Codec
}

// message is a Protobuf form that is packed.
type message struct {
	key  FormKey
	with *packing.Codec
	size int
	data []byte
}

func (m *message) is(key FormKey) bool { return m != nil && m.key == key }

func (m *message) unpack() []byte { return m.with.MustUnpack(make([]byte, 0, m.size), m.data) }

// weight is what a packed message takes.
func (m *message) weight() int {
	if m == nil {
		return 0
	}
	return len(m.data) + int(unsafe.Sizeof(*m))
}

// Sized is the number of bytes that NoteSize was given, if it was.
func (it *Item) Sized() (n int, ok bool) {
	n = int(it.body.Load().sized.Load())
	return n - 1, n > 0
}

// NoteSize keeps how many bytes the Protobuf form has that is made of the item's bytes as they
// are. It is kept for good, where the form itself may be dropped: lists tell it first of all.
func (it *Item) NoteSize(n int) {
	if n < math.MaxInt32 {
		it.body.Load().sized.Store(int32(n + 1))
	}
}

// AppendBytes appends a form that is kept and is bytes; false if there is none.
func (it *Item) AppendBytes(dst []byte, key FormKey) ([]byte, bool) {
	b := it.body.Load()
	if m := b.message(); m.is(key) {
		it.use()
		return m.with.MustUnpack(dst, m.data), true
	}
	if f := find(b.forms(), key); f != nil && f.done.Load() && f.err == nil {
		if raw, ok := f.value.([]byte); ok {
			it.use()
			return append(dst, raw...), true
		}
	}
	return dst, false
}

// What is kept of a packed object in one number.
const (
	flagDeleting = 1 << iota
	flagForeground
	flagOrphan
	flagManyOwners // they are read from the value
)

// appendMeta appends what unpackMeta and ownerInfo read, but for what is common.
func appendMeta(dst []byte, m *Meta, manyOwners bool) []byte {
	flags := uint64(0)
	for i, is := range [...]bool{m.Deleting, m.Foreground, m.Orphan, manyOwners} {
		if is {
			flags |= 1 << i
		}
	}
	for _, n := range [...]uint64{flags, uint64(m.from), uint64(m.to), uint64(len(m.Fields))} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = packing.AppendText(packing.AppendText(dst, m.UID), m.CreationTimestamp)
	for _, f := range m.Fields {
		dst = packing.AppendText(dst, f)
	}
	return dst
}

// unpackMeta is the metadata of a packed body but for its labels. Its strings are views of the body.
func (b *body) unpackMeta() *Meta {
	r := metaReader(b.data[:b.split])
	m := &Meta{storage: b.with.storage}
	m.Deleting = r.number()&flagDeleting != 0
	m.from, m.to = r.number(), r.number()
	fields := r.number()
	m.UID, m.CreationTimestamp = r.text(), r.text()
	if m.storage != nil {
		m.Fields = make([]string, fields)
	}
	for i := range m.Fields {
		m.Fields[i] = r.text()
	}
	return m
}

// ownerInfo is what a packed body says to Item.OwnerInfo. Its string is a view of the body.
func (b *body) ownerInfo() OwnerInfo {
	r := metaReader(b.data[:b.split])
	flags := r.number()
	r.number() // where the metadata lies
	r.number()
	r.number() // how many fields there are
	return OwnerInfo{UID: r.text(), Deleting: flags&flagDeleting != 0, Foreground: flags&flagForeground != 0, Orphan: flags&flagOrphan != 0}
}

// ownersKept says that the owners of a packed body are all in common.
func (b *body) ownersKept() bool {
	r := metaReader(b.data[:b.split])
	return r.number()&flagManyOwners == 0
}

// metaReader reads what appendMeta wrote.
type metaReader []byte

func (r *metaReader) number() int {
	n, size := binary.Uvarint(*r)
	*r = (*r)[size:]
	return int(n)
}

func (r *metaReader) text() string {
	n := r.number()
	s := packing.View((*r)[:n:n])
	*r = (*r)[n:]
	return s
}

// labels are the labels of an item, of whatever it may lie in.
func (it *Item) labels() labels.Labels {
	if b := it.body.Load(); b.packed() {
		return b.common
	}
	return it.Meta().Labels
}
