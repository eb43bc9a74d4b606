package rowlocktest

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobuf is the prefix of a Protobuf body.
var protobuf = []byte("k8s\x00")

// metaOf returns the metadata of an object in a body, and the Status. Bodies other than JSON and Protobuf
// have none.
func metaOf(body []byte) (meta metav1.ObjectMeta, status metav1.Status) {
	envelope, ok := bytes.CutPrefix(body, protobuf)
	if !ok {
		var obj struct{ Metadata metav1.ObjectMeta }
		if json.Unmarshal(body, &obj) == nil {
			meta = obj.Metadata
		}
		if json.Unmarshal(body, &status) != nil {
			status = metav1.Status{}
		}
		return meta, status
	}
	var unknown runtime.Unknown
	if unknown.Unmarshal(envelope) != nil {
		return meta, status
	}
	if unknown.Kind == "Status" {
		if status.Unmarshal(unknown.Raw) != nil {
			status = metav1.Status{}
		}
		return meta, status
	}
	// Every kind has its metadata where this one has.
	var obj metav1.PartialObjectMetadata
	if obj.Unmarshal(unknown.Raw) == nil {
		meta = obj.ObjectMeta
	}
	return meta, status
}
