package ownership

import (
	"bytes"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// The library keeps the members of a map or a list in a sorted slice, into which it inserts them one by one: n members cost
// n*n/2 moves, and nothing cancels that. Ten thousand take a quarter of a second, a hundred thousand half a minute. So
// this file checks all input of the library. Plans need no such limits.

// maxMoves bounds the squares of the numbers of members side by side, added up over a whole
// object: 20,000 members in one place, or as much of many smaller ones as a body can hold.
const maxMoves = 400_000_000

// maxOwned bounds the number of entries of managed fields times the bytes of all their sets: a second or two. The library
// visits all others for each applier, and merges the sets of surplus updaters one by one.
const maxOwned = 16 << 20

// checkFields refuses an object that has too many fields side by side. v is a tree or a
// value of a Go type.
func checkFields(v any) error {
	if afterFields(reflect.ValueOf(v), maxMoves) < 0 {
		return budget.TooMuch("too many fields stand side by side for their owners to be kept; about 20000 are possible")
	}
	return nil
}

// checkEntries refuses managed fields that own too much. Clients can write anything there.
func checkEntries(entries []metav1.ManagedFieldsEntry) error {
	owned, left := 0, maxMoves
	for i := range entries {
		if set := entries[i].FieldsV1; set != nil {
			owned += len(set.Raw)
			left = afterSet(set.Raw, left)
		}
	}
	if owned*len(entries) > maxOwned {
		return budget.TooMuch("too many managers own fields of the object: %d, with %d bytes of fields", len(entries), owned)
	}
	if left < 0 {
		return budget.TooMuch("too many fields stand side by side in metadata.managedFields; about 20000 are possible")
	}
	return nil
}

// afterSet returns the budget of moves that remains after the text of a set. A negative result means that it
// needs more; then the text was not read completely. The text may be invalid; unclosed text, and text after a
// value that is not a string, counts as closed at its end, because the library reads as far as it can.
func afterSet(text []byte, left int) int {
	var open []int // how many members there are in the objects under way
	read := 0
	for at, end := range scan.Tokens(text) {
		switch text[at] {
		case '{':
			open = append(open, 0)
		case ':':
			if len(open) > 0 {
				open[len(open)-1]++
			}
		case '}':
			if last := len(open) - 1; last >= 0 {
				left -= open[last] * open[last]
				open = open[:last]
			}
		}
		if read = end; left < 0 {
			return left
		}
	}
	rest := bytes.Count(text[read:], []byte{':'})
	for _, n := range open {
		rest += n
	}
	return left - rest*rest
}

// afterFields returns the budget of moves that remains after the fields of a value.
func afterFields(v reflect.Value, left int) int {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			left = afterFields(v.Elem(), left)
		}
	case reflect.Map:
		left -= v.Len() * v.Len()
		if isFlat(v.Type().Elem()) {
			break
		}
		for it := v.MapRange(); left >= 0 && it.Next(); {
			left = afterFields(it.Value(), left)
		}
	case reflect.Slice, reflect.Array:
		return afterItems(v, left)
	case reflect.Struct:
		for i := 0; left >= 0 && i < v.NumField(); i++ {
			if f := v.Field(i); f.CanInterface() { // else a library's own: the time zones that a time refers to
				left = afterFields(f, left)
			}
		}
	}
	return left
}

// afterItems is afterFields for a list.
func afterItems(v reflect.Value, left int) int {
	n, elem := v.Len(), v.Type().Elem()
	if elem.Kind() == reflect.Uint8 {
		return left
	}
	// Lists whose items have no members are mostly owned as a whole.
	if isFlat(elem) || n > 0 && elem.Kind() == reflect.Interface && holdsFlat(v.Index(0)) && holdsFlat(v.Index(n-1)) {
		return left - n*n/4
	}
	left -= n * n
	for i := 0; left >= 0 && i < n; i++ {
		left = afterFields(v.Index(i), left)
	}
	return left
}

// isFlat reports whether the values of a type have no members.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Array, reflect.Struct:
		return false
	}
	return true
}

// holdsFlat reports whether an interface holds a value that has no members.
func holdsFlat(v reflect.Value) bool { return v.IsNil() || isFlat(v.Elem().Type()) }
