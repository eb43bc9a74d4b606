// Package scan walks JSON text without decoding it. It alone knows JSON's syntax: the ends of strings, the
// form of numbers, the separators of values.
//
// Functions take the index of the first byte of something and return the index after its last one, or -1.
// They never read outside of the text, whatever it contains. Except for those documented to trust the text,
// they accept exactly what encoding/json accepts, down to a depth that the caller names; like encoding/json
// they accept invalid UTF-8 in strings.
package scan

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// MaxDepth is the nesting limit of encoding/json.
const MaxDepth = 10000

// Layout determines where white space is allowed.
type Layout bool

const (
	Loose Layout = false // between any two tokens
	Tight Layout = true  // nowhere, as encoders write
)

// Space skips white space.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// space is Space where the layout has any.
func (l Layout) space(b []byte, i int) int {
	if l == Tight {
		return i
	}
	return Space(b, i)
}

// Text is the content of a string apart from plain ASCII.
type Text uint8

const (
	Escaped Text = 1 << iota
	NonASCII
)

// String reads a string with its quotes.
func String(b []byte, i int) (end int, has Text) {
	if i >= len(b) || b[i] != '"' {
		return -1, 0
	}
	var all uint64 // all bytes, ored together
	for i++; i < len(b); {
		if i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			hits := special(x)
			if hits == 0 {
				all |= x
				i += 8
				continue
			}
			zeros := bits.TrailingZeros64(hits)
			all |= x & (1<<(zeros&^7) - 1)
			i += zeros / 8
		} else if isPlain[b[i]] {
			all |= uint64(b[i])
			i++
			continue
		}
		switch b[i] {
		case '"':
			if all&highBits != 0 {
				has |= NonASCII
			}
			return i + 1, has
		case '\\':
			has |= Escaped
			if i = escape(b, i+1); i < 0 {
				return -1, 0
			}
		default:
			return -1, 0 // a control character
		}
	}
	return -1, 0
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special has the top bit set of each of eight bytes that is a quote, a backslash or a control
// character. A borrow may set bits above the first such byte, but never below it.
func special(x uint64) uint64 {
	quote, slash := x^(lowBits*'"'), x^(lowBits*'\\')
	hits := ((x - lowBits*0x20) & ^x) | ((quote - lowBits) & ^quote) | ((slash - lowBits) & ^slash)
	return hits & highBits
}

// Plain returns the index of the next byte from i on that is a quote, a backslash or a control
// character, or len(b).
func Plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if hits := special(binary.LittleEndian.Uint64(b[i:])); hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for i < len(b) && isPlain[b[i]] {
		i++
	}
	return i
}

var isPlain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// escape reads the part after a backslash.
func escape(b []byte, i int) int {
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

// Unquote returns the content of a valid quoted string.
func Unquote(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// Number reads a number.
func Number(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = digits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = digits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digits(b, i)
	}
	return i
}

func digits(b []byte, i int) int {
	if i >= len(b) || b[i] < '0' || b[i] > '9' {
		return -1
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// Word reads true, false or null.
func Word(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}
