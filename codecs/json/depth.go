package json

import "bytes"

// Deeper tells whether data nests deeper than limit levels. It trusts the bytes to be
// well-formed JSON; on others its answer means nothing.
func Deeper(data []byte, limit int) bool {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= limit {
		return false // the most frequent answer, in no time
	}
	depth := 0
	for i := 0; i < len(data); {
		switch data[i] {
		case '"':
			if i = skipString(data, i); i < 0 {
				return false
			}
			continue
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
		i++
	}
	return false
}
