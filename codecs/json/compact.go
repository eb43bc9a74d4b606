package json

import (
	"bytes"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// compact reports whether data is one well-formed JSON value that encoding/json
// would copy as it is: without white space, and with nothing to escape for HTML.
// It may return false for a value that would be copied.
func compact(data []byte) bool {
	for _, c := range []byte("<>&\xe2") { // U+2028 and U+2029 begin with the last
		if bytes.IndexByte(data, c) >= 0 {
			return false
		}
	}
	return scan.Tight.Valid(data, decodeDepth)
}
