// Package framing writes answers to a connection: watch events one after another
// in each wire form, and bodies compressed where that pays.
package framing

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
)

// AppendEvent appends one whole frame of a watch in the given media type. object
// is the object's kept form: whole JSON, or the raw Protobuf or CBOR message.
func AppendEvent(dst []byte, mediaType, eventType string, gvk schema.GroupVersionKind, object []byte) ([]byte, error) {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	switch mediaType {
	case codecs.JSON:
		return json.AppendEvent(dst, eventType, object), nil
	case codecs.Protobuf:
		return protobuf.AppendEvent(dst, eventType, apiVersion, kind, object), nil
	case codecs.CBOR:
		return cbor.AppendEvent(dst, eventType, apiVersion, kind, object), nil
	}
	return dst, fmt.Errorf("no frames for %s", mediaType)
}

// AppendError appends the event that ends a watch with an error.
func AppendError(dst []byte, mediaType string, status *metav1.Status) ([]byte, error) {
	named := *status
	named.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	var object []byte
	var err error
	switch mediaType {
	case codecs.JSON:
		object, err = json.Codec{}.Encode(nil, &named)
	case codecs.Protobuf:
		object, err = protobuf.Marshal(&named)
	case codecs.CBOR:
		object, err = cbor.Marshal(&named)
	}
	if err != nil {
		return dst, err
	}
	return AppendEvent(dst, mediaType, "ERROR", named.GroupVersionKind(), object)
}
