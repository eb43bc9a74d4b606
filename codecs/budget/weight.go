package budget

import (
	"reflect"
	"sync"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// Memory limits the memory of the values of one body of at most DefaultBody bytes. Decoding briefly takes about twice as
// much.
const Memory = 96 << 20

// MemoryOf returns how much the values of a body of n bytes may take. Each byte above DefaultBody may take twelve: an
// object or list for each 32 bytes of text, or a value of YAML for each 21.
func MemoryOf(n int) int64 { return Memory + 12*above(n) }

// untyped is the memory of an object or a list in a tree of plain values.
const untyped = 384

// Weight returns the maximum memory of that many objects and lists in a value of type t. It is close to the truth
// only for input that is made to be large.
func Weight(containers int, t reflect.Type) int64 { return int64(containers) * int64(Largest(t)) }

// Fits refuses a body of n bytes whose values would take more than MemoryOf.
func Fits(weight int64, n int, t reflect.Type) error {
	most := MemoryOf(n)
	if weight <= most {
		return nil
	}
	return TooMuch("the objects and lists in the body are too many: a %s may have about %d", name(t), most/int64(Largest(t)))
}

func name(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

var largest sync.Map // reflect.Type -> int

// Largest returns the size of the largest value that one object or list of the input becomes
// somewhere in a value of type t.
func Largest(t reflect.Type) int {
	if n, ok := largest.Load(t); ok {
		return n.(int)
	}
	n := 64
	for of := range reach(t) {
		n = max(n, int(of.Size()))
	}
	largest.Store(t, n)
	return n
}

// reach returns the types of values that a value of type t references, without the value itself. A type that can
// hold anything counts as a tree.
func reach(t reflect.Type) map[reflect.Type]bool {
	out, seen := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	var walk func(reflect.Type)
	outside := func(t reflect.Type) {
		out[t] = true
		walk(t)
	}
	walk = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			outside(t.Elem())
		case reflect.Map:
			outside(t.Elem())
		case reflect.Interface:
			out[reflect.TypeFor[[untyped]byte]()] = true
		case reflect.Array:
			walk(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				walk(t.Field(i).Type)
			}
		}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	walk(t)
	return out
}

// JSON counts the objects and lists in a JSON text, without brackets in its strings. It only estimates if the
// estimate is small enough.
func JSON(data []byte, enough int) int { return scan.Containers(data, enough) }
