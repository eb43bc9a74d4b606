package copying

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// asYAML escapes characters in JSON that YAML does not allow or folds: servers parse an apply as YAML. Such
// characters occur only in strings.
func asYAML(data []byte) []byte {
	var out bytes.Buffer
	from := 0
	for i := 0; i < len(data); {
		r, size := rune(data[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(data[i:])
		}
		if r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff {
			out.Write(data[from:i])
			fmt.Fprintf(&out, `\u%04x`, r)
			from = i + size
		}
		i += size
	}
	if from == 0 {
		return data
	}
	out.Write(data[from:])
	return out.Bytes()
}
