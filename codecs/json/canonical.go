package json

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	exact "sigs.k8s.io/json"
)

// The checker walks encoded objects along their Go types without decoding them, for readers that pass stored
// bytes on as they are. Like the decoder it is prepared once for each type, and gives up at anything rare.

// Identity holds the name, namespace, kind and so on of an object.
type Identity struct {
	Kind, APIVersion, Name, Namespace string
}

// Canonical reports whether data is an object of the type to which obj points as Encode writes it: without
// white space, every known field at most once and in order, each of its type, all text valid. With a view, it
// has null for the empty fields that the view writes as null, and no other null instead of an empty field.
// Data that is not canonical may still be decodable; no data is canonical if the configuration selects the
// standard decoder. For a nil obj, and an unstructured one, names ascend and the metadata is that of any
// object. The identity's strings are parts of data.
func (c Codec) Canonical(data []byte, obj runtime.Object) (id Identity, ok bool) {
	if !c.fastPathEnabled() {
		c.count(Check, Standard)
		return id, false
	}
	way := c.try(Check, reflect.TypeOf(obj), func() bool {
		key := rootKey{}
		if _, tree := obj.(runtime.Unstructured); obj != nil && !tree {
			key.t = reflect.TypeOf(obj).Elem()
		}
		end, pl := -1, c.plans()
		walkWith(func(m *memory) {
			walk := &checking{data: data, text: unsafe.String(unsafe.SliceData(data), len(data)), memory: m}
			end = pl.rootChecker(key)(walk, 0)
			id = walk.id
		})
		return end == len(data)
	})
	return id, way == Fast
}

// checking is one walk.
type checking struct {
	data   []byte
	text   string // the same memory
	depth  int
	id     Identity
	memory *memory
}

// checker takes the index of a value's first byte, and returns the one after its last,
// or -1.
type checker func(c *checking, i int) int

// order is the order of the members of structs.
type order bool

const (
	asDeclared order = false // as the fields of the type
	byName     order = true  // by name, as in maps
)

type rootKey struct{ t reflect.Type } // nil: of no type

func (pl *plans) rootChecker(key rootKey) checker {
	if c, ok := pl.roots.Load(key); ok {
		return c.(checker)
	}
	how := asDeclared
	if key.t == nil {
		how = byName
	}
	named := map[string]checker{
		"name":      text(func(id *Identity) *string { return &id.Name }),
		"namespace": text(func(id *Identity) *string { return &id.Namespace }),
	}
	parts := map[string]checker{
		"kind":       text(func(id *Identity) *string { return &id.Kind }),
		"apiVersion": text(func(id *Identity) *string { return &id.APIVersion }),
		"metadata":   pl.newStructChecker(reflect.TypeFor[metav1.ObjectMeta](), how, named),
	}
	made := newTreeChecker(parts)
	if key.t != nil {
		made = pl.newStructChecker(key.t, how, parts)
	}
	c, _ := pl.roots.LoadOrStore(key, made)
	return c.(checker)
}

type structKey struct {
	t   reflect.Type
	how order
}

type lazyChecker struct {
	once sync.Once
	structKey
	fn checker
}

func (pl *plans) structChecker(t reflect.Type, how order) checker {
	key := structKey{t, how}
	d, ok := pl.checkers.Load(key)
	if !ok {
		d, _ = pl.checkers.LoadOrStore(key, &lazyChecker{structKey: key})
	}
	lazy := d.(*lazyChecker)
	return func(c *checking, i int) int {
		lazy.once.Do(func() { lazy.fn = memoized(pl.newStructChecker(lazy.t, lazy.how, nil)) })
		return lazy.fn(c, i)
	}
}

func (pl *plans) newChecker(t reflect.Type, how order) checker {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return timeChecker(time.RFC3339)
	case reflect.TypeFor[metav1.MicroTime]():
		return timeChecker(metav1.RFC3339Micro)
	case reflect.TypeFor[resource.Quantity]():
		return checkQuantity
	case reflect.TypeFor[intstr.IntOrString]():
		return func(c *checking, i int) int {
			if c.at(i) == '"' {
				return checkText(c, i)
			}
			return integerChecker(32)(c, i)
		}
	case reflect.TypeFor[metav1.FieldsV1]():
		return checkFields
	case reflect.TypeFor[runtime.RawExtension]():
		return checkRaw
	}
	if customDecoding(t) && t.Kind() != reflect.Pointer {
		return pl.otherChecker(t)
	}
	switch t.Kind() {
	case reflect.String:
		return checkText
	case reflect.Bool:
		return func(c *checking, i int) int {
			if end := c.word(i, "true"); end >= 0 {
				return end
			}
			return c.word(i, "false")
		}
	case reflect.Int32:
		return integerChecker(32)
	case reflect.Int64:
		return integerChecker(64)
	case reflect.Struct:
		return pl.structChecker(t, how)
	case reflect.Pointer:
		return orNull(pl.newChecker(t.Elem(), how))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !customDecoding(t.Elem()) {
			return orNull(checkBase64)
		}
		elem := pl.newChecker(t.Elem(), how)
		return orNull(func(c *checking, i int) int { return c.array(i, elem) })
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !customDecoding(t.Key()) {
			elem := pl.newChecker(t.Elem(), how)
			return orNull(func(c *checking, i int) int {
				return c.sortedObject(i, func(string) checker { return elem })
			})
		}
	}
	return pl.otherChecker(t)
}

func orNull(f checker) checker {
	return func(c *checking, i int) int {
		if c.at(i) == 'n' {
			return c.word(i, "null")
		}
		return f(c, i)
	}
}

// notNull returns a checker of a field that is left out where it is empty.
func notNull(f checker) checker {
	return func(c *checking, i int) int {
		if c.at(i) == 'n' {
			return -1
		}
		return f(c, i)
	}
}

// otherChecker checks by the exact decoder.
func (pl *plans) otherChecker(t reflect.Type) checker {
	return func(c *checking, i int) int {
		end := checkRaw(c, i)
		if end < 0 {
			return -1
		}
		if problems, err := exact.UnmarshalStrict(pl.marked([]byte(c.text[i:end]), t), reflect.New(t).Interface()); err != nil || len(problems) > 0 {
			return -1
		}
		return end
	}
}

type checkedField struct {
	name     string
	value    checker
	required bool
}

// newStructChecker checks the members of a struct, some of them by the checkers in
// special.
func (pl *plans) newStructChecker(t reflect.Type, how order, special map[string]checker) checker {
	decoded, ok := pl.decodedFields(t, 0)
	if customDecoding(t) || !ok {
		return pl.otherChecker(t)
	}
	fields, index, nulls := make([]checkedField, 0, len(decoded)), make(map[string]int, len(decoded)), 0
	for _, f := range decoded {
		value := special[f.name]
		if value == nil {
			value = pl.newChecker(f.t, how)
		}
		if f.optional && !f.null {
			value = notNull(value)
		}
		required := f.null && how == asDeclared && special == nil // an object itself has a time
		if required {
			nulls++
		}
		fields = append(fields, checkedField{f.name, value, required})
	}
	if how == byName {
		slices.SortFunc(fields, func(a, b checkedField) int { return strings.Compare(a.name, b.name) })
	}
	for i, f := range fields {
		if _, again := index[f.name]; again {
			return pl.otherChecker(t) // which one wins depends on depth and tags
		}
		index[f.name] = i
	}
	return func(c *checking, i int) int {
		next, missing := 0, nulls
		end := c.object(i, func(name string) checker {
			at := next
			if at >= len(fields) || fields[at].name != name {
				var known bool
				if at, known = index[name]; !known || at < next {
					return nil
				}
			}
			next = at + 1
			if fields[at].required {
				missing--
			}
			return fields[at].value
		})
		if missing > 0 {
			return -1
		}
		return end
	}
}

// newTreeChecker checks an object of no type, but for the members in special.
func newTreeChecker(special map[string]checker) checker {
	return func(c *checking, i int) int {
		return c.sortedObject(i, func(name string) checker {
			if f := special[name]; f != nil {
				return f
			}
			return checkAny
		})
	}
}
