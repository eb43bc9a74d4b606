package json

import (
	stdjson "encoding/json"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/codecs/yield"
)

// treeOf returns the tree of plain values that v is, if it is one.
func treeOf(v any) (tree map[string]any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case *unstructured.Unstructured:
		if v != nil {
			return v.Object, true
		}
	}
	return nil, false
}

var errNoTree = errors.New("a value that no JSON decodes to")

// appendTree appends a plain value as encoding/json does.
func appendTree(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return appendString(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		text, err := stdjson.Marshal(v)
		return append(dst, text...), err
	case map[string]any:
		return appendMap(dst, v, func(dst []byte, v *any) ([]byte, error) { return appendTree(dst, *v) })
	case []any:
		if v == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			before := len(dst)
			if dst, err = appendTree(dst, item); err != nil {
				return dst, err
			}
			yield.Within(before, len(dst))
		}
		return append(dst, ']'), nil
	}
	return dst, errNoTree
}
