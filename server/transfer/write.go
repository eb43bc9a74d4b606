package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// Writer makes entries of rows. It may be used by many goroutines at once.
type Writer struct{ *layout }

// NewWriter makes a Writer of keys below a prefix; "" is DefaultPrefix.
func NewWriter(prefix string) *Writer { return &Writer{newLayout(prefix)} }

// Entry returns a stock server's entry for the object of a live row, whose value was decrypted; see the package
// comment for its form. ok is false for a row that is no object, which has no entry. The value is the
// caller's. Errors: foreign.KeyError for a row that cannot be read, or that no key can name.
func (w *Writer) Entry(row sqlstore.Row) (e foreign.Entry, ok bool, err error) {
	if strings.HasPrefix(row.Key.Resource, "~") {
		return foreign.Entry{}, false, nil
	}
	key, r, err := w.key(row.Key)
	if err != nil {
		return foreign.Entry{}, false, err
	}
	e = foreign.Entry{Key: key, CreateRevision: row.Created, ModRevision: row.Revision, ExpiresAt: row.ExpiresAt}
	if e.Value, err = w.encode(r, row); err != nil {
		return foreign.Entry{}, false, &foreign.KeyError{Key: key, Why: err.Error()}
	}
	return e, true, nil
}

// key names the object of a row; r is nil for a custom resource.
func (w *Writer) key(k sqlstore.Key) (key string, r *kinds.Resource, err error) {
	refuse := func(why string) (string, *kinds.Resource, error) {
		return "", nil, &foreign.KeyError{Key: k.String(), Why: why}
	}
	if k.Name == "" || strings.Contains(k.Name, "/") || strings.Contains(k.Namespace, "/") {
		return refuse("has a name or namespace that no key of etcd can hold")
	}
	var place string
	if r = w.catalogue.ByStorage(k.Resource); r != nil {
		place = placeOf(r)
	} else {
		plural, group, ok := strings.Cut(k.Resource, ".")
		if !ok || !strings.Contains(group, ".") {
			return refuse("is of no resource that is known here")
		}
		place = group + "/" + plural
	}
	if r != nil && r.Namespaced != (k.Namespace != "") {
		return refuse("is in a namespace, or in none, unlike its resource")
	}
	key = w.prefix + "/" + place + "/"
	if k.Namespace != "" {
		key += k.Namespace + "/"
	}
	key += k.Name
	return key, r, foreign.Check(key, 0)
}

// encode makes the value.
func (w *Writer) encode(r *kinds.Resource, row sqlstore.Row) ([]byte, error) {
	if row.Damaged != nil { // whatever can be read of it
		return nil, row.Damaged
	}
	if _, _, _, sealed := sqlstore.SealedBy(row.Value); sealed {
		return nil, errors.New("its value is encrypted, and was to be decrypted first")
	}
	if r == nil || r.Storage.Key == definitionStorage || r.Storage.Key == serviceStorage { // a stock server stores these as JSON, whatever --storage-media-type is
		var fields map[string]json.RawMessage
		err := json.Unmarshal(row.Value, &fields)
		if err == nil && fields == nil {
			err = errors.New("it is null")
		}
		if err != nil {
			return nil, fmt.Errorf("its value cannot be read: %w", err)
		}
		return append(bytes.Clone(bytes.TrimRight(row.Value, "\n")), '\n'), nil
	}
	obj := r.NewStored()
	if _, err := w.json.Decode(row.Value, obj, codecs.Ignore); err != nil {
		return nil, fmt.Errorf("its value cannot be read: %w", err)
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Storage.GVK)
	return w.protobuf.Encode(nil, obj)
}
