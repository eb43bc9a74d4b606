// Package protobuf is the Protobuf wire form: an envelope that names the kind,
// around a message.
//
// It promises: the bytes are those a stock server writes, so that lists and watch
// events can be put together from the messages of single objects, made once.
package protobuf

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/codecs/protobuf/transcode"
)

// Prefix starts every enveloped message.
const Prefix = "k8s\x00"

// Codec implements codecs.Codec for application/vnd.kubernetes.protobuf.
type Codec struct {
	JSON json.Codec // decodes the input of FromJSON; Decode empties the fields that its view lacks
}

var _ codecs.Codec = Codec{}

// MediaType returns application/vnd.kubernetes.protobuf.
func (Codec) MediaType() string { return codecs.Protobuf }

// Weigh implements codecs.Codec.
func (Codec) Weigh(data []byte, obj runtime.Object) (int64, error) {
	t := reflect.TypeOf(obj)
	n := len(data) / 2 // an empty message takes two bytes
	if weight := budget.Weight(n, t); weight <= budget.Small && (len(data) < 2048 || !budget.Recursive(t)) {
		return weight, nil
	}
	env, err := open(data)
	if err != nil || recursive(obj) && tooDeep(env.raw) {
		return 0, nil // it is refused for that
	}
	w := weight{mostReread: budget.RereadOf(len(data))}
	w.add(env.raw, t)
	if budget.Recursive(t) && w.reread > w.mostReread {
		return 0, budget.TooNested()
	}
	return w.memory, nil
}

// Kind reads kind and API version from the envelope.
func (Codec) Kind(data []byte) (schema.GroupVersionKind, error) {
	env, err := open(data)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return schema.FromAPIVersionAndKind(env.apiVersion, env.kind), nil
}

// Decode reads an enveloped message into obj. Unknown fields are legal in Protobuf
// and so never problems.
func (c Codec) Decode(data []byte, obj runtime.Object, _ codecs.Strictness) ([]string, error) {
	env, err := open(data)
	if err != nil {
		return nil, err
	}
	if !tagged.Supports(reflect.TypeOf(obj)) {
		return nil, notMarshalable(obj)
	}
	if recursive(obj) && tooDeep(env.raw) {
		return nil, errors.New("exceeded max depth")
	}
	if err := checkQuantities(env.raw, reflect.TypeOf(obj)); err != nil {
		return nil, err
	}
	if err := tagged.Unmarshal(env.raw, obj); err != nil {
		return nil, err
	}
	if err := checkEmbedded(obj); err != nil {
		return nil, err
	}
	c.JSON.View().Clear(obj)
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(env.apiVersion, env.kind))
	return nil, nil
}

// Encode appends obj in its envelope.
func (c Codec) Encode(dst []byte, obj runtime.Object) ([]byte, error) {
	raw, err := c.Message(obj)
	if err != nil {
		return dst, err
	}
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return c.AppendObject(dst, apiVersion, kind, raw), nil
}

// Marshal returns the message of an object without envelope.
func Marshal(obj runtime.Object) ([]byte, error) {
	if !tagged.Supports(reflect.TypeOf(obj)) {
		return nil, notMarshalable(obj)
	}
	return tagged.Append(nil, obj)
}

// FromJSON returns the message of an object that is given as JSON. newObject makes an empty object
// of its kind.
func (c Codec) FromJSON(newObject func() runtime.Object, data []byte) ([]byte, error) {
	obj := newObject()
	if _, err := c.JSON.Decode(data, obj, codecs.Ignore); err != nil {
		return nil, err
	}
	return c.Message(obj)
}

// AppendFromJSON is FromJSON that appends to dst, for objects as encoders write them mostly without making
// the object. t is the type to which newObject's result points. data must be JSON.
func (c Codec) AppendFromJSON(dst []byte, newObject func() runtime.Object, t reflect.Type, data []byte) ([]byte, error) {
	out := dst
	if c.JSON.Try(json.Transcode, t, func() (ok bool) { out, ok = transcode.Append(c.JSON.View(), dst, data, t); return ok }) {
		return out, nil
	}
	raw, err := c.FromJSON(newObject, data)
	return append(dst, raw...), err
}

// PartialFromJSON returns the PartialObjectMetadata message of an object of any kind.
func (c Codec) PartialFromJSON(data []byte) ([]byte, error) {
	partial := &metav1.PartialObjectMetadata{}
	if metadata := scan.Lookup(data, "metadata"); metadata != nil {
		if _, err := c.JSON.Unmarshal(metadata, &partial.ObjectMeta, codecs.Ignore); err != nil {
			return nil, err
		}
	}
	return Marshal(partial)
}

type envelope struct {
	apiVersion, kind string
	raw              []byte
}

func open(data []byte) (envelope, error) {
	switch {
	case len(data) == 0:
		return envelope{}, errors.New("empty data")
	case !bytes.HasPrefix(data, []byte(Prefix)):
		return envelope{}, fmt.Errorf("provided data does not appear to be a protobuf message, expected prefix %v", []byte(Prefix))
	case len(data) == len(Prefix):
		return envelope{}, errors.New("empty body")
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(data[len(Prefix):]); err != nil {
		return envelope{}, err
	}
	return envelope{unknown.APIVersion, unknown.Kind, unknown.Raw}, nil
}

func notMarshalable(obj any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("object %T does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message", obj),
	}}
}
