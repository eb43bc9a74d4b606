// Package table is the Table form: rows of cells, with the objects or without them.
//
// It promises: the cells of an object are encoded once for each of its revisions;
// a request only fills in the ages, which depend on the time it is made.
package table

import (
	stdjson "encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/codecs/json"
)

// Include selects the content of a row in addition to its cells.
type Include uint8

const (
	Metadata Include = iota // the object's PartialObjectMetadata
	Object                  // the whole object
	None                    // nothing
)

// ParseInclude reads the includeObject parameter, or gives a 400.
func ParseInclude(value string) (Include, error) {
	switch metav1.IncludeObjectPolicy(value) {
	case "", metav1.IncludeMetadata:
		return Metadata, nil
	case metav1.IncludeObject:
		return Object, nil
	case metav1.IncludeNone:
		return None, nil
	}
	err := field.Invalid(field.NewPath("includeObject"), value, "must be 'Metadata', 'Object', 'None', or empty")
	return 0, apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", err))
}

// Definitions encodes column definitions, for AppendHead.
func Definitions(columns []metav1.TableColumnDefinition) ([]byte, error) {
	if columns == nil {
		columns = []metav1.TableColumnDefinition{}
	}
	return stdjson.Marshal(columns)
}

// AppendHead starts a table of the given version ("v1", "v1beta1"). Rows separated
// by commas and Tail must follow. Nil definitions are null: the later events of a
// watch do not repeat them.
func AppendHead(dst []byte, version string, meta *metav1.ListMeta, definitions []byte) ([]byte, error) {
	dst = append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `","metadata":`...)
	dst = json.AppendListMeta(dst, meta)
	dst = append(dst, `,"columnDefinitions":`...)
	if definitions == nil {
		definitions = []byte("null")
	}
	dst = append(dst, definitions...)
	return append(dst, `,"rows":[`...), nil
}

// Tail ends a table.
const Tail = "]}"
