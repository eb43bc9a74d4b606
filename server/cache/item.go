package cache

import (
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Item is one version of one object. It is immutable, but for the wire forms and
// the metadata that are made on first use and kept.
type Item struct {
	Namespace string
	Name      string
	Revision  int64
	Created   int64
	JSON      []byte // the whole object with its resourceVersion in place; the stored bytes if Corrupt
	Corrupt   error  // why the stored value cannot be read
	Sealed    bool   // it is because it cannot be decrypted: JSON is what lies in the table

	line    []byte // JSON and a newline
	storage *atomic.Pointer[kinds.Storage]
	head    int32
	older   bool
	meta    atomic.Pointer[Meta]
	forms   atomic.Pointer[form[FormKey]]
}

// Form names a kept wire form of an item.
type Form uint8

const (
	FormJSON        Form = iota // the object in another version than the stored one
	FormProtobuf                // the object's raw protobuf message
	FormCBOR                    // the object as one CBOR data item
	FormPartialJSON             // PartialObjectMetadata as JSON
	FormTableRow                // see codecs/table
	FormOther                   // free for callers that tell their forms apart by For
)

// FormKey tells the kept forms of an item apart. For is what the form depends on
// besides the bytes: the *kinds.Resource of a served version, or nil.
type FormKey struct {
	Form Form
	For  any
}

// form is an element of a linked list, as an item has few forms or none. The first caller
// that needs a form makes its value.
type form[K comparable] struct {
	key   K
	once  sync.Once
	value any
	err   error
	next  *form[K]
}

// NewItem makes an item of a row as it lies in the table. r is the resource of the
// stored version; nil where the catalogue has none. Rows that are no API objects keep
// their bytes as they are.
func NewItem(codec json.Codec, row *sqlstore.Row, r *kinds.Resource) *Item {
	var storage *kinds.Storage
	if r != nil {
		storage = r.Storage
	}
	it := own(row, storage)
	if !Internal(row.Key.Resource) {
		it.judge(codec, r, row)
	}
	return it
}

// NewOwnItem makes an item of a row whose value this process has written itself.
func NewOwnItem(row *sqlstore.Row, storage *kinds.Storage) *Item {
	it := own(row, storage)
	if !Internal(row.Key.Resource) {
		it.trust(row.Value)
	}
	return it
}

func own(row *sqlstore.Row, storage *kinds.Storage) *Item {
	ptr := new(atomic.Pointer[kinds.Storage])
	ptr.Store(storage)
	return bareItem(row, ptr)
}

// Internal says that rows of this storage key are the server's own, not API objects.
func Internal(storage string) bool { return len(storage) > 0 && storage[0] == '~' }

// bareItem has a row's bytes as they are.
func bareItem(row *sqlstore.Row, storage *atomic.Pointer[kinds.Storage]) *Item {
	// The key's strings may be parts of a whole request body. Few namespaces hold
	// many objects, so those are shared.
	return &Item{
		Namespace: unique.Make(row.Key.Namespace).Value(),
		Name:      strings.Clone(row.Key.Name),
		Revision:  row.Revision,
		Created:   row.Created,
		JSON:      row.Value,
		storage:   storage,
		older:     row.Deleted,
	}
}

// judge takes a value that anybody may have written.
func (it *Item) judge(codec json.Codec, r *kinds.Resource, row *sqlstore.Row) {
	if row.Unopened != nil {
		it.Corrupt, it.Sealed = row.Unopened, true
		return
	}
	var value []byte
	if value, it.Corrupt = integrity.Read(codec, r, row); it.Corrupt == nil {
		it.trust(value)
	}
}

// trust takes a value that is an encoded object.
func (it *Item) trust(value []byte) {
	out, l, err := splice(value, it.Revision)
	if err != nil {
		it.Corrupt = err
		return
	}
	it.setLine(out, l)
}

// at is the same state at another revision, as a watcher sees what left its
// selection.
func (it *Item) at(revision int64) *Item {
	out := &Item{
		Namespace: it.Namespace, Name: it.Name, Revision: revision, Created: it.Created,
		JSON: it.JSON, Corrupt: it.Corrupt, Sealed: it.Sealed, storage: it.storage, older: true,
	}
	if it.Corrupt != nil || it.head == 0 {
		return out
	}
	b, l, err := splice(it.JSON, revision)
	if err != nil {
		out.Corrupt = err
		return out
	}
	out.setLine(b, l)
	return out
}

func (it *Item) setLine(line []byte, l layout) {
	n := len(line) - 1
	it.line, it.JSON, it.head = line, line[:n:n], int32(l.head)
}

// Older says that the object may have been written before Revision: it is shown as it
// was before it went.
func (it *Item) Older() bool { return it.older }

// Line is the object's JSON with the newline that ends a response.
func (it *Item) Line() []byte { return it.line }

// Metadata is the object's metadata as JSON; nil for a corrupt item.
func (it *Item) Metadata() []byte {
	m := it.Meta()
	if it.Corrupt != nil || m.to <= m.from {
		return nil
	}
	return it.JSON[m.from:m.to:m.to]
}

// Meta is scanned on first use. It is never nil; that of a corrupt item is empty.
func (it *Item) Meta() *Meta {
	st := it.storage.Load()
	if m := it.meta.Load(); m != nil && (m.storage == st || m.storage == nil && st == nil) {
		return m
	}
	m := &Meta{storage: st}
	if it.Corrupt == nil {
		if scanned, err := ScanMeta(it.JSON, st); err == nil {
			m = scanned
		}
	}
	if m.Fields == nil && st != nil {
		m.Fields = make([]string, len(st.Fields))
	}
	it.meta.Store(m)
	return m
}

// Body is the object's JSON after its opening brace, without kind and apiVersion
// where it starts with them: what follows "{" in a list of built-in kinds.
func (it *Item) Body() []byte { return it.JSON[it.head:] }

// Form returns a kept form, or makes and keeps it. make is called once for a key;
// others that ask meanwhile wait for it. It may ask for other forms.
func (it *Item) Form(key FormKey, make func(*Item) (any, error)) (any, error) {
	f := keep(&it.forms, key)
	f.once.Do(func() { f.value, f.err = make(it) })
	return f.value, f.err
}

// Bytes is Form for forms that are bytes.
func (it *Item) Bytes(key FormKey, make func(*Item) ([]byte, error)) ([]byte, error) {
	v, err := it.Form(key, func(it *Item) (any, error) { return make(it) })
	if err != nil {
		return nil, err
	}
	b, _ := v.([]byte)
	return b, nil
}

// Has says that a form was made, or is being made.
func (it *Item) Has(key FormKey) bool {
	for f := it.forms.Load(); f != nil; f = f.next {
		if f.key == key {
			return true
		}
	}
	return false
}

// keep finds the entry of a key in a list that only grows at its head, or adds it.
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
