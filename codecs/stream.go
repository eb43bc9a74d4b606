package codecs

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// List is a list without its items.
type List struct {
	APIVersion, Kind string
	Meta             *metav1.ListMeta // nil: the list has no metadata at all, where the form allows that
	// Custom writes the members as a stock server does for custom resources: in the order of their
	// names, so that the metadata comes after the items. Forms other than JSON do not mind.
	Custom bool
	// NoItems writes the items as null, or leaves them out: a stock server answers so where it
	// never allocated them. No item may follow.
	NoItems bool
	// Count is the number of items, Size the number of their bytes: the sum of ItemSize of each.
	// JSON needs neither.
	Count, Size int
}

// Streamer is a wire form whose lists and watch events are assembled from the messages of single objects,
// which are made once and cached.
//
// A list is: AppendListHead; for each item AppendItemHead and then the bytes of the item; AppendListTail.
// Appended bytes may be written and dropped at any point between.
type Streamer interface {
	// Message encodes an object for the cache: as whole JSON, or as a Protobuf or CBOR message without its
	// kind and API version.
	Message(obj runtime.Object) ([]byte, error)
	// AppendObject appends a message as the body of an answer. JSON has no newline behind it.
	AppendObject(dst []byte, apiVersion, kind string, message []byte) []byte
	// AppendListHead appends the part before the items.
	AppendListHead(dst []byte, l *List) ([]byte, error)
	// AppendItemHead appends the part before an item of size bytes.
	AppendItemHead(dst []byte, first bool, size int) []byte
	// ItemSize returns the number of bytes that an item of size bytes adds to List.Size.
	ItemSize(size int) int
	// AppendListTail appends the part after the items, in JSON without a newline.
	AppendListTail(dst []byte, l *List) []byte
	// AppendEvent appends one whole frame of a watch.
	AppendEvent(dst []byte, eventType, apiVersion, kind string, message []byte) []byte
}

// AppendError appends the event that ends a watch with an error.
func AppendError(dst []byte, s Streamer, status *metav1.Status) ([]byte, error) {
	named := *status
	named.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	message, err := s.Message(&named)
	if err != nil {
		return dst, err
	}
	return s.AppendEvent(dst, "ERROR", named.APIVersion, named.Kind, message), nil
}
