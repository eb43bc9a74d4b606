package cache

import (
	"errors"
	"unsafe"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

var (
	errSyntax = errors.New("not valid JSON")
	errShape  = errors.New("not an API object")
)

// skip is scan.Value at a depth: it checks the value at an index, and returns the index after it.
func skip(b []byte, at, depth int) int { return scan.Loose.Value(b, at, scan.MaxDepth-depth) }

// view is b as a string without a copy. Only for bytes that never change.
func view(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

// text is the string at i without a copy where that is possible; anything but a
// string gives its literal, null gives "".
func text(b []byte, i int) (s string, end int) {
	if i < len(b) && b[i] == '"' {
		end, has := scan.String(b, i)
		if end < 0 {
			return "", -1
		}
		if has&scan.Escaped != 0 {
			return scan.Unquote(b[i:end]), end
		}
		return view(b[i+1 : end-1]), end
	}
	if end = scan.Skip(b, i); end < 0 {
		return "", -1
	}
	if b[i] == 'n' {
		return "", end
	}
	return view(b[i:end]), end
}
