package cache

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"strings"
	"unique"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// NewItem makes an item of a row of the table. r is the resource of the stored version, or nil if the catalogue has none.
// Rows that are not API objects keep their bytes unchanged.
func NewItem(codec json.Codec, row *sqlstore.Row, r *kinds.Resource) *Item {
	var storage *kinds.Storage
	if r != nil {
		storage = r.Storage
	}
	it := own(row, storage)
	if !Internal(row.Key.Resource) {
		it.scanUntrusted(codec, r, row, nil)
	}
	return it
}

// NewOwnItem makes an item of a row whose value this process has encoded.
func NewOwnItem(row *sqlstore.Row, storage *kinds.Storage) *Item {
	it := own(row, storage)
	if !Internal(row.Key.Resource) {
		it.splice(nil, row.Value)
	}
	return it
}

// NewUnstoredItem makes an item of an object that a dry run would have stored. version is its resourceVersion, which the
// client may have sent with a new object; "" for none.
func NewUnstoredItem(row *sqlstore.Row, version string, storage *kinds.Storage) *Item {
	it := own(row, storage)
	var text []byte
	var err error
	if version != "" {
		text, err = stdjson.Marshal(version) // the client may have sent anything
	}
	var head int
	if err == nil {
		text, head, err = metadata.SpliceVersion(nil, row.Value, text)
	}
	it.setLine(text, head, err)
	return it
}

func own(row *sqlstore.Row, storage *kinds.Storage) *Item {
	at := new(storageInfo)
	at.init()
	at.storage.Store(storage)
	return bareItem(row, at, sharedName(row.Key.Namespace))
}

// Internal reports whether the rows of this storage key are the server's own and not API objects.
func Internal(storage string) bool { return len(storage) > 0 && storage[0] == '~' }

// sharedName returns the name of a namespace for items. Few namespaces hold many objects, so items share their names. It may wait for
// the end of a garbage collection.
func sharedName(namespace string) string { return unique.Make(namespace).Value() }

// bareItem makes an item with the row's bytes unchanged, and with its namespace, which is a text of its own: the key's strings may be
// parts of a whole request body.
func bareItem(row *sqlstore.Row, at *storageInfo, namespace string) *Item {
	it := &Item{
		Namespace: namespace,
		Name:      strings.Clone(row.Key.Name),
		Revision:  row.Revision,
	}
	if row.Deleted {
		it.bits.Store(flagOlder)
	}
	it.body.Store(bareBody(at, row.Value))
	it.setCreated(row.Created)
	return it
}

// scanUntrusted reads a value that any program may have written. It makes the line in room, unless room is nil.
func (it *Item) scanUntrusted(codec json.Codec, r *kinds.Resource, row *sqlstore.Row, room []byte) {
	if row.Unopened != nil && row.Damaged == nil {
		it.bits.Or(flagSealed)
	}
	value, err := row.Value, cmp.Or(row.Damaged, row.Unopened)
	if err == nil {
		value, err = integrity.Read(codec, r, row)
	}
	if err != nil {
		it.fail(err)
		return
	}
	it.splice(room, value)
}

// splice takes a value that is an encoded object. It makes the line in room, or in memory of its own if room is nil.
func (it *Item) splice(room, value []byte) {
	line, head, err := metadata.Splice(room, value, it.Revision)
	it.setLine(line, head, err)
}

// at returns the same state at another revision: a watcher sees it for an object that left its selection. An item that cannot
// be read makes a corrupt one.
func (it *Item) at(revision int64) *Item {
	out := &Item{Namespace: it.Namespace, Name: it.Name, Revision: revision}
	out.bits.Store(flagOlder | it.bits.Load()&flagSealed)
	var text []byte
	b, err := it.tryPlain()
	if err == nil {
		text, err = b.json(), it.Err()
	}
	out.body.Store(bareBody(it.info(), text))
	out.setCreated(it.Created())
	if err != nil {
		out.fail(err)
	} else if it.head() != 0 {
		out.splice(nil, text)
	}
	return out
}

// setLine gives the item a line, unless making it has failed. Its body is that of the row until then.
func (it *Item) setLine(line []byte, head int, err error) {
	if err != nil {
		it.fail(err)
		return
	}
	if head > maxHead { // the kind or the API version has megabytes: Body has both, too
		head = bytes.IndexByte(line, '{') + 1
	}
	it.bits.Or(uint32(head))
	b := plainBody(it.info(), line)
	b.like(it.body.Load(), nil, nil)
	it.body.Store(b)
}

// fail makes the item one that cannot be read. No other goroutine may have it yet.
func (it *Item) fail(err error) {
	m, failed := it.body.Load().keep(), &rare{err: err}
	if m.rare != nil {
		failed.created = m.rare.created
	}
	m.rare = failed
	it.bits.Or(flagUnreadable)
}
