package cache

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/cache/packing"
)

// body is the bytes of an item, as they are or packed, with what was made of them. An item
// that is packed, or unpacked, gets another body: what a reader has of the former one stays
// as it was.
//
// There is one for each object: it has 64 bytes, which is a size that memory is given in. What
// most do not have lies apart.
type body struct {
	data   []byte          // plain: JSON and, unless bare, a newline; packed: the metadata, and JSON with its newline
	with   *shape          // what it is packed with; nil: it is plain
	common *packing.Common // labels and owners, where it is packed
	made   atomic.Pointer[made]
	size   int32         // of JSON, where it is packed; noNewline
	split  int32         // where the metadata ends in data
	hard   atomic.Uint32 // number of the shape that a plain body was found not to be worth packing with
	sized  atomic.Int32  // bytes of the Protobuf form, and one; 0 where nobody knows
}

// made is what was made of a body.
type made struct {
	message *message             // the packed Protobuf form; nil if there is none. It never changes
	meta    atomic.Pointer[Meta] // of what is plain
	forms   atomic.Pointer[form[FormKey]]
}

// noNewline is the size of a plain body that is bare.
const noNewline = -1

// bareBody is a plain body without a newline.
func bareBody(data []byte) *body { return &body{data: data, size: noNewline} }

func (b *body) packed() bool { return b.with != nil }

func (b *body) bare() bool { return b.size == noNewline }

// keep is where to put what is made of the body.
func (b *body) keep() *made {
	if m := b.made.Load(); m != nil {
		return m
	}
	b.made.CompareAndSwap(nil, &made{})
	return b.made.Load()
}

// message is the packed Protobuf form, or nil.
func (b *body) message() *message {
	if m := b.made.Load(); m != nil {
		return m.message
	}
	return nil
}

// forms is the first of the forms that were made, or nil.
func (b *body) forms() *form[FormKey] {
	if m := b.made.Load(); m != nil {
		return m.forms.Load()
	}
	return nil
}

// meta is the metadata of a plain body, if it is known.
func (b *body) meta() *Meta {
	if m := b.made.Load(); m != nil {
		return m.meta.Load()
	}
	return nil
}

// like takes the forms, and the Protobuf form, of another body of the same bytes, before others see it.
func (b *body) like(other *body, message *message, forms *form[FormKey]) {
	b.sized.Store(other.sized.Load())
	if message != nil || forms != nil {
		m := &made{message: message}
		m.forms.Store(forms)
		b.made.Store(m)
	}
}

// json is the JSON of a plain body.
func (b *body) json() []byte {
	if n := len(b.data) - 1; !b.bare() {
		return b.data[:n:n]
	}
	return b.data
}

// line appends the JSON of a packed body of the item, and its newline. What does not come back is read again from its row.
func (it *Item) line(b *body, dst []byte) []byte {
	dst, err := b.with.objects.Unpack(dst, b.data[b.split:])
	if err == nil {
		return dst
	}
	if it.home.again != nil {
		if made := it.home.again(it, b); made != nil {
			return append(dst, made.data...)
		}
	}
	panic(fmt.Sprintf("memory of a packed object was changed, and its row cannot be read: %v", err))
}

// use notes that the item was read, and tells whether it was before in this round of packing.
func (it *Item) use() (again bool) {
	if it.used.Load() {
		return true
	}
	it.used.Store(true)
	return false
}

// plain is the item's body, unpacked. What is read more than once within a round of packing
// stays so, as long as there is room.
func (it *Item) plain() *body {
	again, b := it.use(), it.body.Load()
	if !b.packed() {
		return b
	}
	made := &body{data: it.line(b, make([]byte, 0, b.size+1))}
	if again && it.home.plain.Room() {
		made.like(b, b.message(), b.forms()) // a form may be in the making right now, from what is read here
		if it.body.CompareAndSwap(b, made) {
			it.home.plain.Grow(len(made.data))
		}
	}
	return made
}

// JSON is the whole object with its resourceVersion in place; the stored bytes if Corrupt.
func (it *Item) JSON() []byte { return it.plain().json() }

// Peek is JSON for those who look at many objects once: what is packed stays so.
func (it *Item) Peek() []byte {
	b := it.body.Load()
	if b.packed() {
		return it.line(b, make([]byte, 0, b.size+1))[:b.size:b.size]
	}
	return b.json()
}

// PeekIn is Peek that unpacks into room, which grows as it needs to: what it returns is good
// until room is used again.
func (it *Item) PeekIn(room *[]byte) []byte {
	b := it.body.Load()
	if !b.packed() {
		return b.json()
	}
	*room = it.line(b, slices.Grow((*room)[:0], int(b.size)+1))
	return (*room)[:b.size:b.size]
}

// Line is the object's JSON with the newline that ends a response; nil for a corrupt item.
func (it *Item) Line() []byte {
	if b := it.plain(); !b.bare() {
		return b.data
	}
	return nil
}

// Body is the object's JSON after its opening brace, without kind and apiVersion
// where it starts with them: what follows "{" in a list of built-in kinds.
func (it *Item) Body() []byte { return it.JSON()[it.head:] }

// Size is the number of bytes of JSON, which need not be unpacked for it.
func (it *Item) Size() int {
	b := it.body.Load()
	if b.packed() {
		return int(b.size)
	}
	return len(b.json())
}

// BodySize is the number of bytes of Body.
func (it *Item) BodySize() int { return it.Size() - int(it.head) }

// AppendJSON appends JSON to dst, as Peek reads it.
func (it *Item) AppendJSON(dst []byte) []byte { return it.appendFrom(dst, 0) }

// AppendBody appends Body to dst, as Peek reads it.
func (it *Item) AppendBody(dst []byte) []byte { return it.appendFrom(dst, int(it.head)) }

func (it *Item) appendFrom(dst []byte, from int) []byte {
	b := it.body.Load()
	if !b.packed() {
		return append(dst, b.json()[from:]...)
	}
	at, size := len(dst), int(b.size)
	dst = it.line(b, slices.Grow(dst, size+1))
	n := copy(dst[at:], dst[at+from:at+size])
	return dst[:at+n]
}

// Metadata is the object's metadata as JSON; nil for a corrupt item.
func (it *Item) Metadata() []byte {
	if it.Corrupt != nil {
		return nil
	}
	b := it.plain()
	m := it.metaOf(b)
	if m.to <= m.from {
		return nil
	}
	return b.json()[m.from:m.to:m.to]
}

// Meta is scanned on first use. It is never nil; that of a corrupt item is empty.
func (it *Item) Meta() *Meta {
	b := it.body.Load()
	if !b.packed() {
		return it.metaOf(b)
	}
	if b.with.storage != it.home.storage.Load() {
		return it.metaOf(it.plain())
	}
	m := b.unpackMeta()
	m.Labels = b.common.Set()
	return m
}

// fieldMeta is Meta for who only wants fields: where a packed item has it, without the labels, of
// which a map would have to be made.
func (it *Item) fieldMeta() *Meta {
	if b := it.body.Load(); b.packed() && b.with.storage == it.home.storage.Load() {
		return b.unpackMeta()
	}
	return it.Meta()
}

// metaOf is the metadata of the item as a plain body has it.
func (it *Item) metaOf(b *body) *Meta {
	st := it.home.storage.Load()
	if m := b.meta(); m != nil && m.storage == st {
		return m
	}
	m := &Meta{storage: st}
	if it.Corrupt == nil {
		if scanned, err := ScanMeta(b.json(), st); err == nil {
			m = scanned
		}
	}
	if m.Fields == nil && st != nil {
		m.Fields = make([]string, len(st.Fields))
	}
	b.keep().meta.Store(m)
	return m
}
