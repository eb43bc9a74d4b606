package cache

import (
	"errors"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache/packing"
)

var (
	errSyntax = errors.New("not valid JSON")
	errShape  = errors.New("not an API object")
)

// skip is scan.Value at a depth: it checks the value at an index, and returns the index after it.
func skip(b []byte, at, depth int) int { return scan.Loose.Value(b, at, scan.MaxDepth-depth) }

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
		return packing.View(b[i+1 : end-1]), end
	}
	if end = scan.Skip(b, i); end < 0 {
		return "", -1
	}
	if b[i] == 'n' {
		return "", end
	}
	return packing.View(b[i:end]), end
}
