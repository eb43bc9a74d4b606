package cache

import (
	"bytes"
	"math"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
)

// Item is one version of one object. Its content never changes. Its bytes may be packed later, and the forms that are made
// of them on first use may be kept or dropped. There are as many as objects, so it has 56 bytes.
type Item struct {
	Namespace string
	Name      string
	Revision  int64

	body atomic.Pointer[body]
	bits atomic.Uint32 // where Body begins, and flags
	age  uint32        // Revision less Created, or maxAge
}

// maxAge is the age of an item whose body has Created, because it differs from Revision by as much or more.
const maxAge = math.MaxUint32

// Created returns the revision at which the object was created.
func (it *Item) Created() int64 {
	if it.age < maxAge {
		return it.Revision - int64(it.age)
	}
	return it.body.Load().derived.Load().rare.created
}

// setCreated sets what Created returns. No other goroutine may have the item yet, and it has a body.
func (it *Item) setCreated(revision int64) {
	if age := uint64(it.Revision - revision); age < maxAge {
		it.age = uint32(age)
		return
	}
	it.age = maxAge
	it.body.Load().keep().rare = &rare{created: revision}
}

// Flags of an item, above the number of bytes before Body.
const (
	maxHead = 1<<24 - 1

	flagUsed       = 1 << (iota + 23) // read since the last round of packing
	flagOlder                         // see Older
	flagUnreadable                    // see Err
	flagSealed                        // see Sealed
)

// Err returns the reason why the stored value cannot be read; nil if it can.
func (it *Item) Err() error {
	if it.bits.Load()&flagUnreadable == 0 {
		return nil
	}
	return it.body.Load().derived.Load().rare.err // its body stays
}

// Sealed reports whether the value cannot be read because it cannot be decrypted: JSON returns the bytes in the table.
func (it *Item) Sealed() bool { return it.bits.Load()&flagSealed != 0 }

// Older reports whether the object may have been written before Revision, because it is the last state of an object that was
// deleted or left a selection.
func (it *Item) Older() bool { return it.bits.Load()&flagOlder != 0 }

// head returns where Body begins; 0: the bytes are not an object's.
func (it *Item) head() int { return int(it.bits.Load() & maxHead) }

func (it *Item) info() *storageInfo { return it.body.Load().with().info }

// InCacheFile reports whether the item's value is in the cache file.
func (it *Item) InCacheFile() bool { return it.body.Load().inFile() != nil }

// use notes that the item was read, and returns whether it was already read in this round of packing.
func (it *Item) use() (again bool) {
	return it.bits.Load()&flagUsed != 0 || it.bits.Or(flagUsed)&flagUsed != 0
}

// plain returns the item's body, unpacked. An item that is read more than once within a round of packing stays unpacked, as
// long as there is room.
func (it *Item) plain() *body {
	b, err := it.tryPlain()
	if err != nil {
		panic(err)
	}
	return b
}

func (it *Item) tryPlain() (*body, error) {
	again, b := it.use(), it.body.Load()
	if !b.packed() {
		return b, nil
	}
	line, err := it.tryLine(b, make([]byte, 0, b.size+1))
	if err != nil {
		return nil, err
	}
	home := b.with().info
	made := plainBody(home, line)
	if again && home.plain.Available() {
		made.like(b, b.message(), b.forms()) // another goroutine may be making a form of these bytes
		if b.inFile() == b {
			made.keep().filed.Store(b)
		}
		if it.body.CompareAndSwap(b, made) {
			home.plain.Grow(len(line))
		}
	}
	return made, nil
}

// JSON returns the whole object with its resourceVersion, or the stored bytes if the item is corrupt.
func (it *Item) JSON() []byte { return it.plain().json() }

// StoredIn reports whether the object was written in a version. It takes a packed one for such: objects are not packed when they are
// written, and package objects writes them in the present version soon after it changes.
func (it *Item) StoredIn(gv schema.GroupVersion) bool {
	b := it.body.Load()
	if b.packed() || it.Err() != nil {
		return true
	}
	named, first := bytes.CutPrefix(b.json(), []byte(`{"apiVersion":`))
	if !first {
		named = scan.Lookup(named, "apiVersion")
	}
	want := `"` + gv.Group + "/" + gv.Version + `"`
	return len(named) >= len(want) && string(named[:len(want)]) == want
}

// Peek is JSON for a caller that reads many objects once: a packed item stays packed.
func (it *Item) Peek() []byte {
	data, err := it.tryPeek()
	if err != nil {
		panic(err)
	}
	return data
}

func (it *Item) tryPeek() ([]byte, error) {
	b := it.body.Load()
	if !b.packed() {
		return b.json(), nil
	}
	line, err := it.tryLine(b, make([]byte, 0, b.size+1))
	if err != nil {
		return nil, err
	}
	return line[:b.size:b.size], nil
}

// PeekIn is Peek that unpacks into room, which it grows. The result is valid until room is used again.
func (it *Item) PeekIn(room *[]byte) []byte {
	b := it.body.Load()
	if !b.packed() {
		return b.json()
	}
	*room = it.line(b, slices.Grow((*room)[:0], int(b.size)+1))
	return (*room)[:b.size:b.size]
}

// Unpacked returns the JSON of the item if it is in memory and not packed. The call does not count as a use.
func (it *Item) Unpacked() (data []byte, ok bool) {
	b := it.body.Load()
	if b.packed() {
		return nil, false
	}
	return b.json(), true
}

// Line returns the object's JSON with the newline that ends an answer; nil for a corrupt item.
func (it *Item) Line() []byte {
	if b := it.plain(); !b.bare() {
		return b.line()
	}
	return nil
}

// Body returns the object's JSON after its opening brace, without kind and apiVersion if it starts with them. Lists of built-in
// kinds have it after "{".
func (it *Item) Body() []byte { return it.JSON()[it.head():] }

// Size returns the number of bytes of JSON. It unpacks nothing.
func (it *Item) Size() int {
	b := it.body.Load()
	if b.packed() {
		return int(b.size)
	}
	return len(b.json())
}

// BodySize returns the number of bytes of Body.
func (it *Item) BodySize() int { return it.Size() - it.head() }

// AppendJSON appends JSON to dst, and leaves a packed item packed.
func (it *Item) AppendJSON(dst []byte) []byte { return it.appendFrom(dst, 0) }

// AppendBody appends Body to dst, and leaves a packed item packed.
func (it *Item) AppendBody(dst []byte) []byte { return it.appendFrom(dst, it.head()) }

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

// Metadata returns the object's metadata as JSON; nil for a corrupt item.
func (it *Item) Metadata() []byte {
	if it.Err() != nil {
		return nil
	}
	b := it.plain()
	return it.metaOf(b).In(b.json())
}

// Meta returns the object's metadata, scanned on first use. It is never nil; for a corrupt item it is empty.
func (it *Item) Meta() *metadata.Meta {
	b := it.body.Load()
	if !b.packed() {
		return it.metaOf(b)
	}
	with := b.with()
	st := with.info.storage.Load()
	if with.storage != st {
		if plain, err := it.tryPlain(); err == nil {
			return it.metaOf(plain)
		}
	}
	m := metadata.Unpack(b.meta(), with.storage, with.shared)
	m.Labels = b.common.Set()
	if with.storage != st { // its fields can be read nowhere
		with.info.unread.Store(true)
		m.Storage, m.Fields = st, noFields(st)
	}
	return m
}

// fieldMeta is Meta for a caller that needs only Fields: of a packed item it makes no map of labels.
func (it *Item) fieldMeta() *metadata.Meta {
	b := it.body.Load()
	if with := b.with(); !with.plain && with.storage == with.info.storage.Load() {
		return metadata.UnpackFields(b.meta(), with.storage, with.shared)
	}
	return it.Meta()
}

// labels returns the labels of an item, packed or not.
func (it *Item) labels() labels.Labels {
	if b := it.body.Load(); b.packed() {
		return b.common
	}
	return it.Meta().Labels
}

// metaOf returns the metadata of a plain body of the item.
func (it *Item) metaOf(b *body) *metadata.Meta {
	st := b.with().info.storage.Load()
	if m := b.scanned(); m != nil && m.Storage == st {
		return m
	}
	m := &metadata.Meta{Storage: st}
	if it.Err() == nil {
		if scanned, err := metadata.Scan(b.json(), st); err == nil {
			m = scanned
		}
	}
	if m.Fields == nil {
		m.Fields = noFields(st)
	}
	b.keep().meta.Store(m)
	return m
}

// OwnerInfo holds the metadata that the garbage collector needs of an owner.
type OwnerInfo = metadata.OwnerInfo

// Owner is one of an object's references to owners.
type Owner = packing.Owner

// OwnerInfo unpacks nothing. For a corrupt item it is empty.
func (it *Item) OwnerInfo() OwnerInfo {
	b := it.body.Load()
	switch {
	case it.Err() != nil:
		return OwnerInfo{}
	case b.packed():
		return metadata.UnpackOwnerInfo(b.meta())
	}
	return it.ownerInfoOf(b).OwnerInfo
}

// Owners appends an item's references to owners, without their JSON. It unpacks nothing unless there are many.
func (it *Item) Owners(dst []Owner) []Owner {
	b := it.body.Load()
	switch {
	case it.Err() != nil:
		return dst
	case b.packed() && !metadata.HasManyOwners(b.meta()):
		return b.common.Refs(dst)
	case b.packed():
		b = plainBody(b.with().info, it.line(b, make([]byte, 0, b.size+1)))
	}
	return it.ownerInfoOf(b).Owners(dst, b.json(), false)
}

// Written returns parts of the item's metadata: the list of its finalizers as JSON, and its references to owners with their
// JSON.
func (it *Item) Written() (finalizers []byte, owners []Owner) {
	if it.Err() != nil {
		return nil, nil
	}
	b := it.plain()
	m := it.ownerInfoOf(b)
	return m.Finalizers(b.json()), m.Owners(nil, b.json(), true)
}

// ownerInfoOf returns the part of a plain body's metadata that OwnerInfo and Owners need. It is not kept: most items are packed
// soon after the garbage collector has read it.
func (it *Item) ownerInfoOf(b *body) *metadata.Meta {
	if m := b.scanned(); m != nil {
		return m
	}
	return metadata.ScanOwnerInfo(b.json())
}
