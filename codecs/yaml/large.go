package yaml

import (
	"bytes"
	"maps"
	"slices"

	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/rowlock/rowlock/codecs/budget"
)

// marshal is goyaml.Marshal of a value that was size bytes of JSON. The library keeps a few hundred bytes for each value until
// it has written the last one, so a large value is written in parts: each of less than partBytes, or one scalar.
func marshal(v any, size int) ([]byte, error) {
	if budget.Large(size) {
		return appendLarge(nil, v)
	}
	return goyaml.Marshal(v)
}

const partBytes = 1 << 20

// weightOf subtracts the bytes of the texts of a value, and some for each value in it, from left, until that is negative.
func weightOf(v any, left int) int {
	left -= 16
	switch v := v.(type) {
	case string:
		left -= len(v)
	case []any:
		for i := 0; left >= 0 && i < len(v); i++ {
			left = weightOf(v[i], left)
		}
	case map[string]any:
		for k, item := range v {
			if left = weightOf(item, left-len(k)); left < 0 {
				break
			}
		}
	}
	return left
}

func isLarge(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return weightOf(v, partBytes) < 0
	}
	return false
}

// appendLarge appends a list or a map, which has an entry at least, entry by entry.
func appendLarge(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if !isLarge(item) {
				var err error
				if dst, err = appendPart(dst, []any{item}); err != nil {
					return dst, err
				}
				continue
			}
			var err error
			if dst, err = appendBelow(append(dst, "-\n"...), item); err != nil {
				return dst, err
			}
		}
		return dst, nil
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			item, err := v[name], error(nil)
			if !isLarge(item) {
				if dst, err = appendPart(dst, map[string]any{name: item}); err != nil {
					return dst, err
				}
				continue
			}
			head, err := goyaml.Marshal(map[string]any{name: nil})
			if err != nil {
				return dst, err
			}
			dst = append(append(dst, bytes.TrimSuffix(head, []byte(" null\n"))...), '\n')
			if dst, err = appendBelow(dst, item); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	return appendPart(dst, v)
}

func appendPart(dst []byte, v any) ([]byte, error) {
	part, err := goyaml.Marshal(v)
	return append(dst, part...), err
}

// appendBelow appends a large value two columns to the right.
func appendBelow(dst []byte, v any) ([]byte, error) {
	below, err := appendLarge(nil, v)
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, len(below)+2*bytes.Count(below, []byte{'\n'}))
	for line := range bytes.Lines(below) {
		if len(line) > 1 {
			dst = append(dst, "  "...)
		}
		dst = append(dst, line...)
	}
	return dst, nil
}
