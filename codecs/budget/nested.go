package budget

import (
	"reflect"
	"sync"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// Some types, such as schemas, contain fields whose decoders and encoders process the whole nested text
// again: a value that is nested 4,000 levels deep there is read 4,000 times, whenever the definition is
// decoded or encoded.

// RereadOf returns how many bytes those decoders may process for a body of n bytes, after the first time. It
// allows a definition of 1.5 MB an average depth of six levels; one that consists only of nesting is refused
// at about 1,000 levels.
func RereadOf(n int) int64 { return 4 * (DefaultBody + above(n)) }

// again are the fields that are read so.
var again = map[string]bool{
	"items": true, "additionalItems": true, "additionalProperties": true, "dependencies": true,
}

// Nested refuses a JSON text of a value of type t that nests too deep for its size.
func Nested(data []byte, t reflect.Type) error {
	if len(data) < 2048 || !Recursive(t) {
		return nil
	}
	left, level, from := RereadOf(len(data)), int64(0), 0
	var open []bool // whether the content of each bracket is read again
	var key string
	spend := func(i int) bool {
		left -= level * int64(i-from)
		from = i
		return left >= 0
	}
	for i, end := range scan.Tokens(data) {
		switch data[i] {
		case '"':
			key = string(data[i+1 : min(end-1, i+1+32)])
		case '{', '[':
			open = append(open, again[key])
			key = ""
			if !spend(i) {
				return TooNested()
			}
			if open[len(open)-1] {
				level++
			}
		case '}', ']':
			if len(open) == 0 {
				return nil // no JSON
			}
			if !spend(i) {
				return TooNested()
			}
			if open[len(open)-1] {
				level--
			}
			open = open[:len(open)-1]
		case ',':
			key = ""
		}
	}
	return nil
}

// TooNested returns the error for a body that would be read again too often.
func TooNested() error { return TooMuch("the schemas in the body nest too deep for their size") }

// maxDepth limits the nesting in JSON and YAML.
const maxDepth = 10_000

// TooDeep reports whether a text has more nested brackets than any JSON or YAML decoder would follow, however
// little it weighs. Brackets in strings count too, so it only explains the refusal of a text that is refused
// anyway.
func TooDeep(data []byte) bool {
	depth := 0
	for _, c := range data {
		switch c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

var recursive sync.Map // reflect.Type -> bool

// Recursive reports whether a type can hold values of a type inside of other values of it.
func Recursive(t reflect.Type) bool {
	if known, ok := recursive.Load(t); ok {
		return known.(bool)
	}
	open, done := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	var walk func(reflect.Type) bool
	walk = func(t reflect.Type) bool {
		if open[t] || done[t] {
			return open[t]
		}
		open[t] = true
		defer func() { open[t], done[t] = false, true }()
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			return walk(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if walk(t.Field(i).Type) {
					return true
				}
			}
		}
		return false
	}
	found := walk(t)
	recursive.Store(t, found)
	return found
}
