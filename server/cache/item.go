package cache

import (
	"cmp"
	stdjson "encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Item is one version of one object. What it says never changes; its bytes may come to lie
// packed, and what is made of them on first use may be kept or dropped.
type Item struct {
	Namespace string
	Name      string
	Revision  int64
	Created   int64
	Corrupt   error // why the stored value cannot be read
	Sealed    bool  // it is because it cannot be decrypted: JSON is what lies in the table

	older bool
	used  atomic.Bool // since it was last looked at for packing
	head  int32
	home  *home
	body  atomic.Pointer[body]
}

// home is what the items of a storage share.
type home struct {
	storage atomic.Pointer[kinds.Storage] // nil while the catalogue does not know the key
	plain   *packing.Budget               // nil: nobody counts
	again   func(it *Item, b *body) *body // makes a body anew that cannot be unpacked; nil, or nil of it: it cannot
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
	done  atomic.Bool // value and err are there
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
		it.judge(codec, r, row, nil)
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

// NewUnstoredItem makes an item of an object that a dry run would have stored. Its resourceVersion is what
// the client sent with a new object, or that of the stored one; "": it has none.
func NewUnstoredItem(row *sqlstore.Row, version string, storage *kinds.Storage) *Item {
	it := own(row, storage)
	var text []byte
	if version != "" {
		text, it.Corrupt = stdjson.Marshal(version) // a client may have sent anything
	}
	var l layout
	if it.Corrupt == nil {
		text, l, it.Corrupt = spliceText(nil, row.Value, text)
	}
	if it.Corrupt == nil {
		it.setLine(text, l)
	}
	return it
}

func own(row *sqlstore.Row, storage *kinds.Storage) *Item {
	at := new(home)
	at.storage.Store(storage)
	return bareItem(row, at)
}

// Internal says that rows of this storage key are the server's own, not API objects.
func Internal(storage string) bool { return len(storage) > 0 && storage[0] == '~' }

// bareItem has a row's bytes as they are.
func bareItem(row *sqlstore.Row, at *home) *Item {
	// The key's strings may be parts of a whole request body. Few namespaces hold
	// many objects, so those are shared.
	it := &Item{
		Namespace: unique.Make(row.Key.Namespace).Value(),
		Name:      strings.Clone(row.Key.Name),
		Revision:  row.Revision,
		Created:   row.Created,
		home:      at,
		older:     row.Deleted,
	}
	it.body.Store(bareBody(row.Value))
	return it
}

// judge takes a value that anybody may have written. Its line is made in room, if there is some.
func (it *Item) judge(codec json.Codec, r *kinds.Resource, row *sqlstore.Row, room []byte) {
	it.Sealed = row.Unopened != nil && row.Damaged == nil
	line, l, err := judged(codec, r, row, room)
	if it.Corrupt = err; err == nil {
		it.setLine(line, l)
	}
}

// judged is the line of a value that anybody may have written, in room if there is some, or why it has none.
func judged(codec json.Codec, r *kinds.Resource, row *sqlstore.Row, room []byte) ([]byte, layout, error) {
	if err := cmp.Or(row.Damaged, row.Unopened); err != nil {
		return nil, layout{}, err
	}
	value, err := integrity.Read(codec, r, row)
	if err != nil {
		return nil, layout{}, err
	}
	return splice(room, value, row.Revision)
}

// trust takes a value that is an encoded object.
func (it *Item) trust(value []byte) {
	line, l, err := splice(nil, value, it.Revision)
	if err != nil {
		it.Corrupt = err
		return
	}
	it.setLine(line, l)
}

// at is the same state at another revision, as a watcher sees what left its
// selection.
func (it *Item) at(revision int64) *Item {
	out := &Item{
		Namespace: it.Namespace, Name: it.Name, Revision: revision, Created: it.Created,
		Corrupt: it.Corrupt, Sealed: it.Sealed, home: it.home, older: true,
	}
	data := it.JSON()
	if it.Corrupt == nil && it.head != 0 {
		b, l, err := splice(nil, data, revision)
		if err == nil {
			out.setLine(b, l)
			return out
		}
		out.Corrupt = err
	}
	out.body.Store(bareBody(data))
	return out
}

func (it *Item) setLine(line []byte, l layout) {
	it.head = int32(l.head)
	it.body.Store(&body{data: line})
}

// Older says that the object may have been written before Revision: it is shown as it
// was before it went.
func (it *Item) Older() bool { return it.older }
