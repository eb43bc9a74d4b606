// Package cbor is the CBOR wire form, an alpha feature that the caller gates.
//
// It promises: the semantics of apimachinery's serializer, and that lists and
// watch events can be put together from single objects, encoded once.
package cbor

import (
	stdjson "encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/quantities"
)

// Codec implements codecs.Codec for application/cbor.
type Codec struct {
	JSON json.Codec // decodes the input of FromJSON; Decode empties the fields that its view lacks
}

var _ codecs.Codec = Codec{}

// MediaType returns application/cbor.
func (Codec) MediaType() string { return codecs.CBOR }

// anyKind represents a missing kind inside this package.
var anyKind = schema.GroupVersionKind{Version: "?", Kind: "?"}

// single makes every kind decode into one object.
type single struct{ obj runtime.Object }

func (s single) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{anyKind}, false, nil
}
func (s single) Recognizes(schema.GroupVersionKind) bool             { return true }
func (s single) New(schema.GroupVersionKind) (runtime.Object, error) { return s.obj, nil }

func decode(data []byte, obj runtime.Object, strict bool) error {
	if t := reflect.TypeOf(obj); quantities.Holds(t) && quantities.Suspect(data) {
		var tree any
		if unmarshal(data, &tree) == nil {
			if err := quantities.CheckTree(tree, t); err != nil {
				return err
			}
		}
	}
	settle(obj)
	s := single{obj}
	_, _, err := cbor.NewSerializer(s, s, cbor.Strict(strict)).Decode(data, &anyKind, obj)
	return err
}

// typeMeta is an object that consists of its kind and version.
type typeMeta struct {
	metav1.TypeMeta `json:",inline"`
}

func (t *typeMeta) DeepCopyObject() runtime.Object { c := *t; return &c }

// Weigh implements codecs.Codec.
func (Codec) Weigh(data []byte, obj runtime.Object) (int64, error) {
	t := reflect.TypeOf(obj)
	n := len(data) // an empty object or list is a byte
	if budget.Weight(n, t) > budget.Small {
		n = containers(data)
	}
	return budget.Weight(n, t), nil
}

// Kind reads kind and API version.
func (Codec) Kind(data []byte) (schema.GroupVersionKind, error) {
	var t typeMeta
	if err := decode(data, &t, false); err != nil {
		return schema.GroupVersionKind{}, err
	}
	gv, err := schema.ParseGroupVersion(t.APIVersion)
	return gv.WithKind(t.Kind), err
}

// Decode reads data into obj. Of unknown fields only the first is reported, by its
// position; repeated keys are errors. The position of a field that the view lacks is that in an object with sorted names.
func (c Codec) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	err := decode(data, obj, s != codecs.Ignore)
	if view := c.JSON.View(); view.Clear(obj) && err == nil && s != codecs.Ignore {
		var tree any
		if err = unmarshal(data, &tree); err != nil {
			return nil, err
		}
		view.MarkTree(tree, reflect.TypeOf(obj))
		marked, e := marshal(tree)
		if e != nil {
			return nil, e
		}
		t := reflect.TypeOf(obj).Elem()
		err = decode(marked, reflect.New(t).Interface().(runtime.Object), true)
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return nil, err
	}
	var problems []string
	for _, e := range strict.Errors() {
		problems = append(problems, e.Error())
	}
	return problems, nil
}

// Encode appends obj as one self-described data item.
func (c Codec) Encode(dst []byte, obj runtime.Object) ([]byte, error) {
	raw, err := c.marshal(content(obj))
	if err != nil {
		return dst, err
	}
	return append(append(dst, selfDescribed...), raw...), nil
}

// marshal encodes v, with null for the empty fields that the view wants although their tags omit them.
func (c Codec) marshal(v any) ([]byte, error) {
	raw, err := marshal(v)
	if view := c.JSON.View(); err == nil && view.NullsAny(reflect.TypeOf(v)) {
		raw, _ = appendNulls(make([]byte, 0, len(raw)+64), raw, reflect.TypeOf(v), view)
	}
	return raw, err
}

// content returns the encoded part of an object.
func content(obj runtime.Object) any {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent()
	}
	return obj
}

// Message implements codecs.Streamer: the map of a typed object without kind and API version, as
// items of a typed list are, or of an unstructured object with them.
func (c Codec) Message(obj runtime.Object) ([]byte, error) {
	if _, ok := obj.(runtime.Unstructured); !ok {
		kind := obj.GetObjectKind()
		gvk := kind.GroupVersionKind()
		kind.SetGroupVersionKind(schema.GroupVersionKind{})
		defer kind.SetGroupVersionKind(gvk)
	}
	return c.marshal(content(obj))
}

// FromJSON is Message of an object in JSON. newObject makes an empty object of its kind; nil for unstructured
// ones.
func (c Codec) FromJSON(newObject func() runtime.Object, data []byte) ([]byte, error) {
	var obj runtime.Object = &unstructured.Unstructured{}
	if newObject != nil {
		obj = newObject()
	}
	if _, err := c.JSON.Decode(data, obj, codecs.Ignore); err != nil {
		return nil, err
	}
	return c.Message(obj)
}

// ToJSON converts any document to JSON: apply patches, which need not be whole objects.
func ToJSON(data []byte) ([]byte, error) {
	var v any
	if err := unmarshal(data, &v); err != nil {
		return nil, err
	}
	return stdjson.Marshal(v)
}
