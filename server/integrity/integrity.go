// Package integrity checks stored values: whether a value is the object of its key.
//
// A value that passes can be decoded as its kind and served as it is; a value that would be served
// differently is encoded again; an unreadable one is reported with a reason, which is short and contains
// nothing of the value but names, versions, numbers and times.
//
// Cause and cost: other writers of the database, and other servers. It costs one walk over a value that this
// process did not write itself, once, when it is loaded or comes with the feed: about as much as a check for
// valid JSON, which it replaces. See docs/design/kinds.md.
package integrity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// zeros are empty objects to be compared with, one for each type of built-in kinds.
var zeros sync.Map // *kinds.Storage -> kinds.Object

func zero(r *kinds.Resource) kinds.Object {
	if r == nil || r.Storage == nil || !r.HasGoType() {
		return nil
	}
	if z, ok := zeros.Load(r.Storage); ok {
		return z.(kinds.Object)
	}
	z, _ := zeros.LoadOrStore(r.Storage, r.NewStored())
	return z.(kinds.Object)
}

// Read returns the bytes to serve for a row, which nearly always are its value, or why
// it cannot be read. r is the resource of the stored version; nil where the catalogue
// has none, as for custom resources before their definition is known.
func Read(codec jsoncodec.Codec, r *kinds.Resource, row *sqlstore.Row) ([]byte, error) {
	value, err := read(codec, r, row)
	if err != nil && len(err.Error()) > longest {
		err = errors.New(strings.ToValidUTF8(err.Error()[:longest], "") + "...")
	}
	return value, err
}

// longest bounds the bytes of a reason: it is cached and logged, and a name or a time may be as long as the
// value.
const longest = 512

func read(codec jsoncodec.Codec, r *kinds.Resource, row *sqlstore.Row) ([]byte, error) {
	z := zero(r)
	if z == nil {
		id, ok := codec.Canonical(row.Value, nil)
		if !ok {
			return rewriteTree(codec, r, row)
		}
		return row.Value, own(r, row, id)
	}
	id, ok := codec.Canonical(row.Value, z)
	if !ok {
		return rewrite(codec, r, row)
	}
	return row.Value, own(r, row, id)
}

// own checks the name that an object has in its metadata.
func own(r *kinds.Resource, row *sqlstore.Row, id jsoncodec.Identity) error {
	gv, err := schema.ParseGroupVersion(id.APIVersion)
	switch _, group, _ := strings.Cut(row.Key.Resource, "."); {
	case err != nil:
		return errors.New("its API version is none")
	case id.Kind == "" || gv.Version == "":
		return errors.New("it names no kind or no API version")
	case zero(r) != nil && gv.WithKind(id.Kind) != r.Storage.GVK:
		return fmt.Errorf("it is a %s of %s, in the place of a %s of %s", id.Kind, gv, r.Storage.GVK.Kind, r.Storage.GVK.GroupVersion())
	case zero(r) == nil && gv.Group != group:
		return fmt.Errorf("it is a %s of %s, which is not of the group %q", id.Kind, gv, group)
	case id.Name != row.Key.Name || id.Namespace != row.Key.Namespace:
		return fmt.Errorf("it calls itself %q in namespace %q", id.Name, id.Namespace)
	}
	return nil
}

// rewrite decodes an object that this server would write in another form, and encodes it again.
func rewrite(codec jsoncodec.Codec, r *kinds.Resource, row *sqlstore.Row) ([]byte, error) {
	if err := object(row.Value); err != nil {
		return nil, err
	}
	obj := r.NewStored()
	if _, err := codec.Decode(row.Value, obj, codecs.Ignore); err != nil {
		return nil, err
	}
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	id := jsoncodec.Identity{Kind: kind, APIVersion: apiVersion, Name: obj.GetName(), Namespace: obj.GetNamespace()}
	if err := own(r, row, id); err != nil {
		return nil, err
	}
	obj.SetResourceVersion("")
	if !r.Storage.KeepEmpty {
		kinds.DropEmpty(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Storage.GVK)
	return codec.Append(nil, obj)
}

// rewriteTree is rewrite for objects without a Go type. Their metadata must be valid: lists in other forms
// than JSON show nothing else of them.
func rewriteTree(codec jsoncodec.Codec, r *kinds.Resource, row *sqlstore.Row) ([]byte, error) {
	if err := object(row.Value); err != nil {
		return nil, err
	}
	var tree map[string]any
	if _, err := codec.Unmarshal(row.Value, &tree, codecs.Ignore); err != nil {
		return nil, err
	}
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if _, err := codec.Unmarshal(row.Value, &head, codecs.Ignore); err != nil {
		return nil, err
	}
	err := own(r, row, jsoncodec.Identity{Kind: head.Kind, APIVersion: head.APIVersion, Name: head.Name, Namespace: head.Namespace})
	if err != nil {
		return nil, err
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
	}
	return codec.Append(nil, tree)
}

// object refuses a value that is not a JSON object, with an error that quotes none of it.
func object(value []byte) error {
	if provider, key, _, sealed := sqlstore.SealedBy(value); sealed { // and this server has no keys
		return fmt.Errorf("it is encrypted (%s, key %q), and --encryption-provider-config is not given", provider, key)
	}
	var syntax *json.SyntaxError
	var members map[string]json.RawMessage
	switch err := json.Unmarshal(value, &members); {
	case errors.As(err, &syntax):
		return fmt.Errorf("not valid JSON: %w", err)
	case err != nil || members == nil:
		return errors.New("not an API object")
	case members["metadata"] == nil:
		return errors.New("not an API object: it has no metadata")
	}
	return nil
}
