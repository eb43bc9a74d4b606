package json

import (
	"bytes"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppendListHead starts a list. Items separated by commas and ListTail must follow.
func AppendListHead(dst []byte, apiVersion, kind string, meta *metav1.ListMeta) ([]byte, error) {
	dst = append(dst, `{"kind":`...)
	dst = strconv.AppendQuote(dst, kind)
	dst = append(dst, `,"apiVersion":`...)
	dst = strconv.AppendQuote(dst, apiVersion)
	dst = append(dst, `,"metadata":`...)
	dst, err := AppendListMeta(dst, meta)
	return append(dst, `,"items":[`...), err
}

// ListTail ends a list.
const ListTail = "]}"

// AppendListMeta appends the metadata of a list.
func AppendListMeta(dst []byte, meta *metav1.ListMeta) ([]byte, error) { return Append(dst, meta) }

// AppendListItem appends an encoded object as an item of a typed list, whose items
// do not repeat kind and apiVersion. These must come first in the object, as the
// encoder writes them; otherwise they stay.
func AppendListItem(dst, object []byte) []byte {
	dst = append(dst, '{')
	return append(dst, WithoutTypeMeta(object)...)
}

// WithoutTypeMeta is the part of an encoded object after "{" and the kind and
// apiVersion that it starts with.
func WithoutTypeMeta(object []byte) []byte {
	rest, ok := bytes.CutPrefix(object, []byte("{"))
	if !ok {
		return object
	}
	for _, name := range []string{`"kind":"`, `"apiVersion":"`} {
		after, ok := bytes.CutPrefix(rest, []byte(name))
		if !ok {
			continue
		}
		end := bytes.IndexByte(after, '"') // neither value holds an escape
		if end < 0 || end+1 >= len(after) {
			return rest
		}
		if rest = after[end+1:]; rest[0] == ',' {
			rest = rest[1:]
		}
	}
	return rest
}

// AppendPartial appends the PartialObjectMetadata of an encoded object. version is
// that of meta.k8s.io.
func AppendPartial(dst []byte, version string, object []byte) []byte {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `","metadata":`...)
	metadata := Lookup(object, "metadata")
	if metadata == nil {
		metadata = []byte(`{"creationTimestamp":null}`)
	}
	dst = append(dst, metadata...)
	return append(dst, '}')
}

// AppendEmptyPartialList appends a whole PartialObjectMetadataList without items:
// these are null then.
func AppendEmptyPartialList(dst []byte, version string, meta *metav1.ListMeta) ([]byte, error) {
	dst, err := AppendListHead(dst, "meta.k8s.io/"+version, "PartialObjectMetadataList", meta)
	return append(dst[:len(dst)-1], "null}"...), err
}

// AppendEvent appends a watch event with its line end.
func AppendEvent(dst []byte, eventType string, object []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, eventType...)
	dst = append(dst, `","object":`...)
	dst = append(dst, object...)
	return append(dst, "}\n"...)
}
