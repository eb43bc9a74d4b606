package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
	"unsafe"
)

// The scanner walks encoded JSON without decoding it. It accepts what
// encoding/json accepts, up to maxDepth levels.

const maxDepth = 10000

var (
	errSyntax = errors.New("not valid JSON")
	errShape  = errors.New("not an API object")
)

// plain tells the bytes of a string that need no attention.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString takes the index of the opening quote and returns the one after the
// closing quote, or -1.
func skipString(b []byte, i int) (end int, escaped bool) {
	if i >= len(b) || b[i] != '"' {
		return -1, false
	}
	for i++; i < len(b); {
		i = skipPlain(b, i)
		if i >= len(b) {
			return -1, false
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = skipEscape(b, i+1); i < 0 {
				return -1, false
			}
		default:
			return -1, false
		}
	}
	return -1, false
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// skipPlain returns the index of the next byte of a string that needs attention,
// looking at eight bytes at once.
func skipPlain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(lowBits*'"'), x^(lowBits*'\\')
		// The top bit of each byte that is below 0x20, a quote or a backslash. A
		// borrow may set bits above the first such byte, but never below it.
		hits := ((x - lowBits*0x20) & ^x) | ((quote - lowBits) & ^quote) | ((slash - lowBits) & ^slash)
		if hits &= highBits; hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for i < len(b) && plain[b[i]] {
		i++
	}
	return i
}

// hop is skipValue for bytes that were checked before: it only looks for the end.
func hop(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		end, _ := skipString(b, i)
		return end
	case '{', '[':
		return hopNested(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

func hopNested(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i, _ = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

func skipEscape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(b) {
			return -1
		}
		for _, c := range b[i+1 : i+5] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

func skipDigits(b []byte, i int) int {
	if i >= len(b) || b[i] < '0' || b[i] > '9' {
		return -1
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func skipNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = skipDigits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i
}

func skipWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// skipValue takes the index of a value's first byte and returns the one after its
// last, or -1.
func skipValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch b[i] {
	case '"':
		end, _ := skipString(b, i)
		return end
	case '{':
		return walkObject(b, i, func(_ []byte, _, at int) (int, bool) {
			return skipValue(b, at, depth+1), true
		})
	case '[':
		return skipArray(b, i, depth)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipArray(b []byte, i, depth int) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = skipValue(b, i, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return -1
		}
	}
}

// walkObject calls member for each member of the object at i, with its unquoted
// key and the indexes of key and value. member returns the index after the value (-1 for
// an error) and whether to go on. The result is the index after the object, or after
// the last value looked at if member stopped, or -1.
func walkObject(b []byte, i int, member func(key []byte, keyAt, at int) (end int, more bool)) int {
	if i >= len(b) || b[i] != '{' {
		return -1
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		end, escaped := skipString(b, i)
		if end < 0 {
			return -1
		}
		keyAt, key := i, b[i+1:end-1]
		if escaped {
			key = []byte(unquote(b[i:end]))
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return -1
		}
		end, more := member(key, keyAt, skipSpace(b, i+1))
		if end < 0 || !more {
			return end
		}
		if i = skipSpace(b, end); i >= len(b) {
			return -1
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return -1
		}
	}
}

// unquote decodes a valid JSON string with its quotes.
func unquote(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

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
		end, escaped := skipString(b, i)
		if end < 0 {
			return "", -1
		}
		if escaped {
			return unquote(b[i:end]), end
		}
		return view(b[i+1 : end-1]), end
	}
	if end = hop(b, i); end < 0 {
		return "", -1
	}
	if b[i] == 'n' {
		return "", end
	}
	return view(b[i:end]), end
}
