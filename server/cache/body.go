package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/cache/values"
	"github.com/rowlock/rowlock/server/kinds"
)

// body is the bytes of an item with the forms made of them: plain, packed in memory, or packed in a file. Packing or unpacking
// an item gives it another body: readers of the former one may go on.
//
// There is one for each object, so it has 40 bytes; and 96 with its Item, a size class of the allocator. What most bodies lack is
// in derived.
type body struct {
	data    *byte                   // plain: JSON and, unless bare, a newline; packed: the metadata, and the value unless that is in a file
	derived atomic.Pointer[derived] // its own, or that of its shape
	common  *packing.Common         // labels and owners, if packed
	size    int32                   // of JSON; its complement if bare
	sized   atomic.Int32            // bytes of the Protobuf form, plus one; 0 if unknown
	at      values.Location         // where the value is in the file of its shape
}

// storageInfo is shared by the items of a storage.
type storageInfo struct {
	storage atomic.Pointer[kinds.Storage] // nil while the key is not in the catalogue
	plain   *packing.Budget               // nil: not counted
	unread  atomic.Bool                   // the fields of an item could not be read: the index of fields may be wrong
	again   func(it *Item, b *body) *body // reads a body again that cannot be unpacked, and returns nil if it cannot; may be nil
	lines   shape                         // of plain bodies
}

func (h *storageInfo) init() {
	h.lines.info, h.lines.plain = h, true
	h.lines.ready()
}

// derived holds the shape of a body, values derived from its bytes, or their source.
type derived struct {
	with    *shape                        // never changes
	filed   atomic.Pointer[body]          // the same bytes packed in a file, for a plain body; or nil
	message *message                      // the packed Protobuf form, or nil; never changes
	meta    atomic.Pointer[metadata.Meta] // of a plain body
	forms   atomic.Pointer[form[FormKey]]
	hard    atomic.Uint32 // number of the shape with which a plain body does not become smaller
	rare    *rare         // or nil; never changes
}

// rare is what few items have.
type rare struct {
	err     error // see Item.Err
	created int64 // see Item.Created
}

func bodyOf(data *byte, with *shape, size int32) *body {
	b := &body{data: data, size: size}
	b.derived.Store(&with.none)
	return b
}

// plainBody returns a body of a line.
func plainBody(of *storageInfo, line []byte) *body {
	return bodyOf(unsafe.SliceData(line), &of.lines, int32(len(line)-1))
}

// bareBody returns a plain body without a newline.
func bareBody(of *storageInfo, data []byte) *body {
	return bodyOf(unsafe.SliceData(data), &of.lines, ^int32(len(data)))
}

// with returns what a body is packed with; plain: the lines of its storage.
func (b *body) with() *shape { return b.derived.Load().with }

func (b *body) packed() bool { return !b.with().plain }

func (b *body) bare() bool { return b.size < 0 }

// plain returns all bytes of a plain body.
func (b *body) plain() []byte {
	if b.bare() {
		return unsafe.Slice(b.data, ^b.size)
	}
	return unsafe.Slice(b.data, b.size+1)
}

// inFile returns the body of the same bytes in a file, or nil.
func (b *body) inFile() *body {
	m := b.derived.Load()
	switch {
	case m.with.plain:
		return m.filed.Load()
	case m.with.values != nil:
		return b
	}
	return nil
}

// again returns a body of the same bytes, without derived values.
func (b *body) again() *body {
	made := bodyOf(b.data, b.with(), b.size)
	made.common, made.at = b.common, b.at
	return made
}

// unpack appends the line of a packed body.
func (b *body) unpack(dst []byte) ([]byte, error) {
	with := b.with()
	if with.values == nil {
		return with.unpack(dst, b.value(), int(b.size))
	}
	value, page, err := with.values.Read(b.at)
	if err != nil {
		return dst, err
	}
	defer page.Release()
	return with.unpack(dst, value, int(b.size))
}

// cloned returns a plain body with its own copy of the bytes, for an item that is not published yet.
func (b *body) cloned() *body {
	made := bodyOf(unsafe.SliceData(bytes.Clone(b.plain())), b.with(), b.size)
	made.like(b, nil, nil)
	return made
}

// hard returns the number of the shape with which a plain body does not become smaller, or 0.
func (b *body) hard() uint32 { return b.derived.Load().hard.Load() }

// keep returns the derived values of the body, and makes them if necessary.
func (b *body) keep() *derived {
	m := b.derived.Load()
	if m != &m.with.none {
		return m
	}
	b.derived.CompareAndSwap(m, &derived{with: m.with})
	return b.derived.Load()
}

// message returns the packed Protobuf form, or nil.
func (b *body) message() *message { return b.derived.Load().message }

// forms returns the first of the forms, or nil.
func (b *body) forms() *form[FormKey] { return b.derived.Load().forms.Load() }

// scanned returns the metadata of a plain body, or nil if it was not scanned yet.
func (b *body) scanned() *metadata.Meta { return b.derived.Load().meta.Load() }

// like takes the forms of another body of the same item. No other goroutine may have b yet.
func (b *body) like(other *body, message *message, forms *form[FormKey]) {
	b.sized.Store(other.sized.Load())
	if rare := other.derived.Load().rare; message != nil || forms != nil || rare != nil {
		m := &derived{with: b.with(), message: message, rare: rare}
		m.forms.Store(forms)
		b.derived.Store(m)
	}
}

// packedData returns the data of a packed body: each text follows its length. Without a value, the value is in a file.
func packedData(meta, value []byte) *byte {
	data := make([]byte, 0, 2*binary.MaxVarintLen32+len(meta)+len(value))
	if data = packing.AppendText(data, packing.View(meta)); len(value) > 0 {
		data = packing.AppendText(data, packing.View(value))
	}
	return unsafe.SliceData(data)
}

// meta returns the packed metadata of a packed body.
func (b *body) meta() []byte {
	meta, _ := packing.TextAt(b.data, 0)
	return packing.Bytes(meta)
}

// value returns the packed value of a body in memory.
func (b *body) value() []byte {
	_, end := packing.TextAt(b.data, 0)
	value, _ := packing.TextAt(b.data, end)
	return packing.Bytes(value)
}

// weight returns the size of data.
func (b *body) weight() int {
	switch {
	case !b.packed():
		return len(b.plain())
	case b.with().values != nil:
		return len(b.meta())
	}
	return len(b.meta()) + len(b.value())
}

// json returns the JSON of a plain body.
func (b *body) json() []byte {
	n := b.size
	if b.bare() {
		n = ^n
	}
	return unsafe.Slice(b.data, n)
}

// line returns the JSON of a plain body that is not bare, with its newline.
func (b *body) line() []byte { return unsafe.Slice(b.data, b.size+1) }

// Form names a cached wire form of an item.
type Form uint8

const (
	FormJSON     Form = iota // the object in another version than the stored one
	FormProtobuf             // the object's raw protobuf message
	FormCBOR                 // the object as one CBOR data item
	FormTableRow             // see codecs/table
	FormOther                // for callers that distinguish their forms by For
)

// FormKey identifies a cached form of an item. For is the other input of the form, in addition to the bytes: the
// *kinds.Resource of a served version, or nil.
type FormKey struct {
	Form Form
	For  any
}

// form is an element of a linked list: an item has few forms. The first caller that needs a form makes its value.
type form[K comparable] struct {
	key   K
	once  sync.Once
	done  atomic.Bool // value and err are set
	value any
	err   error
	next  *form[K]
}

// again reports whether the form can be made again at any time, from the item alone. Conversion webhooks may fail, and of other
// forms the cache does not know.
func (k FormKey) again() bool {
	if k.Form == FormJSON {
		r, ok := k.For.(*kinds.Resource)
		return ok && !r.LoadMayFail()
	}
	return k.Form != FormOther
}

// outdates reports whether a form makes another one useless, because it is of the same version of a custom kind, whose definition
// has changed: a definition makes new resources with each change.
func (k FormKey) outdates(other FormKey) bool {
	now, _ := k.For.(*kinds.Resource)
	was, _ := other.For.(*kinds.Resource)
	return k.Form == other.Form && now != was && now != nil && was != nil && !now.HasGoType() && now.GVR() == was.GVR()
}

// dropOutdated drops all forms if a new one outdates any of them. Those that are in use are made again.
func (m *derived) dropOutdated(by FormKey) {
	head := m.forms.Load()
	for f := head; f != nil; f = f.next {
		if by.outdates(f.key) && m.forms.CompareAndSwap(head, nil) {
			return
		}
	}
}

// find finds the entry of a key, or nil.
func find[K comparable](list *form[K], key K) *form[K] {
	for f := list; f != nil; f = f.next {
		if f.key == key {
			return f
		}
	}
	return nil
}

// keep finds the entry of a key in a list, or adds it at the head.
func keep[K comparable](list *atomic.Pointer[form[K]], key K) *form[K] {
	var fresh *form[K]
	for {
		head := list.Load()
		for f := head; f != nil; f = f.next {
			if f.key == key {
				return f
			}
		}
		if fresh == nil {
			fresh = &form[K]{key: key}
		}
		fresh.next = head
		if list.CompareAndSwap(head, fresh) {
			return fresh
		}
	}
}

// droppable reports whether all forms can be made again, and returns the Protobuf form, which is packed and not dropped.
func (b *body) droppable() (message *form[FormKey], ok bool) {
	for f := b.forms(); f != nil; f = f.next {
		if !f.done.Load() || !f.key.again() {
			return nil, false
		}
		if f.key.Form == FormProtobuf && f.err == nil {
			message = f
		}
	}
	return message, true
}

// otherForm is about the size of a form that is not bytes.
const otherForm = 512

// plainSize returns the size of the parts of the body that are not packed.
func (b *body) plainSize() (n int) {
	if !b.packed() {
		n = len(b.plain())
	}
	for f := b.forms(); f != nil; f = f.next {
		if f.done.Load() {
			n += f.size()
		}
	}
	return n
}

// size returns about the size of a form that is done.
func (f *form[K]) size() int {
	if raw, ok := f.value.([]byte); ok {
		return len(raw)
	}
	return otherForm
}

// shape holds what objects of a storage are packed with.
type shape struct {
	info    *storageInfo
	plain   bool            // the shape of plain bodies: of the other fields, only home is set
	number  uint32          // of the storage's shapes, from 1
	storage *kinds.Storage  // whose fields are in the metadata
	objects *packing.Codec  // nil: values are lines as they are, which is so in files alone
	values  *values.File    // where the values are; nil: in memory
	shared  metadata.Shared // values of fields in the metadata of objects that were read from a file
	none    derived         // of bodies without derived values; it never changes
}

// ready completes a shape.
func (s *shape) ready() *shape {
	s.none.with = s
	return s
}

// unpack appends a line, whose JSON has a size, of its value.
func (s *shape) unpack(dst, value []byte, size int) (_ []byte, err error) {
	from := len(dst)
	if s.objects == nil {
		dst = append(dst, value...)
	} else if dst, err = s.objects.Unpack(dst, value); err != nil {
		return dst, err
	}
	if n := len(dst) - from; n != size+1 {
		return dst[:from], fmt.Errorf("unpacking a value: it has %d bytes, not %d", n, size+1)
	}
	return dst, nil
}

// message is a packed Protobuf form.
type message struct {
	key  FormKey
	with *packing.Codec
	size int
	data []byte
}

func (m *message) is(key FormKey) bool { return m != nil && m.key == key }

func (m *message) unpack() []byte { return m.with.MustUnpack(make([]byte, 0, m.size), m.data) }

// weight returns the size of a packed message in memory.
func (m *message) weight() int {
	if m == nil {
		return 0
	}
	return len(m.data) + int(unsafe.Sizeof(*m))
}
