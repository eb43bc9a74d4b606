package apply

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/budget"
)

// The merge library keeps the members of a map or a list in a sorted slice, into which it
// puts them one by one: with n of them side by side that is n*n/2 moves, and nothing ends
// it. Ten thousand take a quarter of a second, a hundred thousand half a minute. The plans
// do not have that, but they do not apply patches.

// maxSquares bounds the squares of the numbers of members, added up over a whole object:
// 20,000 members in one place, or as much of many smaller ones as a body can hold.
const maxSquares = 400_000_000

// crowded refuses an object that the merge library would take too long for. v is a tree
// or a value of a Go type.
func crowded(v any) error {
	if squares(reflect.ValueOf(v), maxSquares) < 0 {
		return budget.TooMuch("too many fields stand side by side for their owners to be kept; about 20000 are possible")
	}
	return nil
}

// maxOwned bounds the number of entries of managed fields times the bytes of all their
// sets: a second or two. The merge library goes through all others for each applier, and
// joins all sets of updaters that are too many, one by one.
const maxOwned = 16 << 20

// overowned refuses entries of managed fields that the merge library would take too long
// for. A client writes there what it likes.
func overowned(entries []metav1.ManagedFieldsEntry) error {
	owned, left := 0, maxSquares
	for i := range entries {
		if set := entries[i].FieldsV1; set != nil {
			owned += len(set.Raw)
			left = membersOf(set.Raw, left)
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

// membersOf is squares for the text of a set.
func membersOf(text []byte, left int) int {
	var open []int // how many members there are in the objects under way
	for i := 0; i < len(text) && left >= 0; i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
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
	}
	return left
}

// squares takes what a value costs from left, which is negative when that is too much.
func squares(v reflect.Value, left int) int {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			left = squares(v.Elem(), left)
		}
	case reflect.Map:
		left -= v.Len() * v.Len()
		if flat(v.Type().Elem()) {
			break
		}
		for it := v.MapRange(); left >= 0 && it.Next(); {
			left = squares(it.Value(), left)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		// Lists whose items have no members are mostly owned as a whole.
		n, elem := v.Len(), v.Type().Elem()
		if flat(elem) || n > 0 && elem.Kind() == reflect.Interface && scalar(v.Index(0)) && scalar(v.Index(n-1)) {
			left -= n * n / 4
			break
		}
		left -= n * n
		for i := 0; left >= 0 && i < v.Len(); i++ {
			left = squares(v.Index(i), left)
		}
	case reflect.Struct:
		for i := 0; left >= 0 && i < v.NumField(); i++ {
			left = squares(v.Field(i), left)
		}
	}
	return left
}

// scalar tells what an interface holds that has no members.
func scalar(v reflect.Value) bool { return v.IsNil() || flat(v.Elem().Type()) }

// flat tells types that have no members.
func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Array, reflect.Struct:
		return false
	}
	return true
}
