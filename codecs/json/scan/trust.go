package scan

import (
	"bytes"
	"iter"

	"github.com/rowlock/rowlock/codecs/yield"
)

// Skip is Value for text that is well-formed: it looks for the end alone. On other text the end may
// be wrong.
func Skip(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		end, _ := String(b, i)
		return end
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i, _ = String(b, i); i < 0 {
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

// Tokens goes through the brackets, commas, colons and strings of a text, each with where it begins
// and ends. It trusts the text; on other text than JSON it ends early.
func Tokens(b []byte) iter.Seq2[int, int] {
	return func(yield func(at, end int) bool) {
		for i := 0; i < len(b); {
			at := i
			switch b[i] {
			case '"':
				if i, _ = String(b, i); i < 0 {
					return
				}
			case '{', '}', '[', ']', ',', ':':
				i++
			default:
				i++
				continue
			}
			if !yield(at, i) {
				return
			}
		}
	}
}

// Brackets goes through the brackets alone, as Tokens does.
func Brackets(b []byte) iter.Seq[int] {
	return func(yield func(at int) bool) {
		for i := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				end, _ := String(b, i)
				if end < 0 {
					return
				}
				i = end - 1
			case '{', '}', '[', ']':
				if !yield(i) {
					return
				}
			}
		}
	}
}

// Containers counts the objects and arrays in a text. It only estimates if the estimate is small enough; then
// the result may be too large.
func Containers(b []byte, enough int) int {
	n := bytes.Count(b, []byte{'{'}) + bytes.Count(b, []byte{'['})
	if n <= enough {
		return n
	}
	n = 0
	last := 0
	for at := range Brackets(b) {
		if b[at] == '{' || b[at] == '[' {
			n++
		}
		yield.Within(last, at)
		last = at
	}
	return n
}

// Deeper reports whether a text nests deeper than limit levels.
func Deeper(b []byte, limit int) bool {
	if Containers(b, limit) <= limit {
		return false // the most frequent answer, in no time
	}
	depth := 0
	for at := range Brackets(b) {
		switch b[at] {
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// Lookup returns the value at a path of member names in the object at the start of a text, or nil.
// Of several members of a name it takes the first.
func Lookup(b []byte, path ...string) []byte {
	at := Space(b, 0)
	end := len(b)
	for _, want := range path {
		found := false
		stopped := Loose.Members(b, at, func(name Name, value int) (int, bool) {
			if string(name.In(b)) != want {
				return Skip(b, value), true
			}
			at, found = value, true
			return Skip(b, value), false
		})
		if !found || stopped < 0 {
			return nil
		}
		end = stopped
	}
	return b[at:end:end]
}
