package json

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	exact "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/quantities"
)

// The checker below walks encoded objects against their Go types without making any
// of them, for readers that pass stored bytes on as they are. Like the decoder it is
// made ready once for each type, and gives up at whatever is rare.

// Identity is what an object calls itself.
type Identity struct {
	Kind, APIVersion, Name, Namespace string
}

// Canonical reports whether data is an object of the type that obj points to as Encode
// writes it: without white space, every known field at most once and in its order, each
// of its type, all text valid. What is not may still decode; nothing is, where the standard way is
// to be gone. For a nil obj, and one that is unstructured, names rise and the metadata is that of
// any object. The identity's strings are parts of data.
func (c Codec) Canonical(data []byte, obj runtime.Object) (id Identity, ok bool) {
	if !c.goesOwn() {
		c.took(Check, Standard)
		return id, false
	}
	way := c.try(Check, reflect.TypeOf(obj), func() bool {
		key := rootKey{}
		if _, tree := obj.(runtime.Unstructured); obj != nil && !tree {
			key.t = reflect.TypeOf(obj).Elem()
		}
		walk := &checking{data: data, text: unsafe.String(unsafe.SliceData(data), len(data))}
		end := rootChecker(key)(walk, 0)
		id = walk.id
		return end == len(data)
	})
	return id, way == Own
}

// checking is one walk.
type checking struct {
	data  []byte
	text  string // the same memory
	depth int
	id    Identity
}

// checker takes the index of a value's first byte, and returns the one after its last,
// or -1.
type checker func(c *checking, i int) int

// order says how the members of structs stand.
type order bool

const (
	asDeclared order = false // as the fields of the type
	rising     order = true  // by name, as those of maps
)

type rootKey struct{ t reflect.Type } // nil: of no type

var roots, checkers sync.Map // rootKey -> checker, structKey -> *lazyChecker

func rootChecker(key rootKey) checker {
	if c, ok := roots.Load(key); ok {
		return c.(checker)
	}
	how := asDeclared
	if key.t == nil {
		how = rising
	}
	named := map[string]checker{
		"name":      text(func(id *Identity) *string { return &id.Name }),
		"namespace": text(func(id *Identity) *string { return &id.Namespace }),
	}
	parts := map[string]checker{
		"kind":       text(func(id *Identity) *string { return &id.Kind }),
		"apiVersion": text(func(id *Identity) *string { return &id.APIVersion }),
		"metadata":   newStructChecker(reflect.TypeFor[metav1.ObjectMeta](), how, named),
	}
	made := newTreeChecker(parts)
	if key.t != nil {
		made = newStructChecker(key.t, how, parts)
	}
	c, _ := roots.LoadOrStore(key, made)
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

func structChecker(t reflect.Type, how order) checker {
	key := structKey{t, how}
	d, ok := checkers.Load(key)
	if !ok {
		d, _ = checkers.LoadOrStore(key, &lazyChecker{structKey: key})
	}
	lazy := d.(*lazyChecker)
	return func(c *checking, i int) int {
		lazy.once.Do(func() { lazy.fn = newStructChecker(lazy.t, lazy.how, nil) })
		return lazy.fn(c, i)
	}
}

func newChecker(t reflect.Type, how order) checker {
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
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		return checkRaw
	}
	if customDecoding(t) && t.Kind() != reflect.Pointer {
		return otherChecker(t)
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
		return structChecker(t, how)
	case reflect.Pointer:
		return orNull(newChecker(t.Elem(), how))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !customDecoding(t.Elem()) {
			return orNull(checkBase64)
		}
		elem := newChecker(t.Elem(), how)
		return orNull(func(c *checking, i int) int { return c.array(i, elem) })
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !customDecoding(t.Key()) {
			elem := newChecker(t.Elem(), how)
			return orNull(func(c *checking, i int) int {
				return c.rising(i, func(string) checker { return elem })
			})
		}
	}
	return otherChecker(t)
}

func orNull(f checker) checker {
	return func(c *checking, i int) int {
		if c.at(i) == 'n' {
			return c.word(i, "null")
		}
		return f(c, i)
	}
}

// otherChecker asks the exact decoder.
func otherChecker(t reflect.Type) checker {
	return func(c *checking, i int) int {
		end := checkRaw(c, i)
		if end < 0 {
			return -1
		}
		if problems, err := exact.UnmarshalStrict([]byte(c.text[i:end]), reflect.New(t).Interface()); err != nil || len(problems) > 0 {
			return -1
		}
		return end
	}
}

type checkedField struct {
	name  string
	value checker
}

// newStructChecker checks the members of a struct, some of them by the checkers in
// special.
func newStructChecker(t reflect.Type, how order, special map[string]checker) checker {
	decoded, ok := decodedFields(t, 0)
	if customDecoding(t) || !ok {
		return otherChecker(t)
	}
	fields, index := make([]checkedField, 0, len(decoded)), make(map[string]int, len(decoded))
	for _, f := range decoded {
		value := special[f.name]
		if value == nil {
			value = newChecker(f.t, how)
		}
		fields = append(fields, checkedField{f.name, value})
	}
	if how == rising {
		slices.SortFunc(fields, func(a, b checkedField) int { return strings.Compare(a.name, b.name) })
	}
	for i, f := range fields {
		if _, again := index[f.name]; again {
			return otherChecker(t) // which one wins depends on depth and tags
		}
		index[f.name] = i
	}
	return func(c *checking, i int) int {
		next := 0
		return c.object(i, func(name string) checker {
			at := next
			if at >= len(fields) || fields[at].name != name {
				var known bool
				if at, known = index[name]; !known || at < next {
					return nil
				}
			}
			next = at + 1
			return fields[at].value
		})
	}
}

// newTreeChecker checks an object of no type, but for the members in special.
func newTreeChecker(special map[string]checker) checker {
	return func(c *checking, i int) int {
		return c.rising(i, func(name string) checker {
			if f := special[name]; f != nil {
				return f
			}
			return checkAny
		})
	}
}

// checkAny checks a value of no type.
func checkAny(c *checking, i int) int {
	switch c.at(i) {
	case '{':
		return c.rising(i, func(string) checker { return checkAny })
	case '[':
		return c.array(i, checkAny)
	}
	return checkScalar(c, i)
}

// checkRaw checks a value that is kept as it is written.
func checkRaw(c *checking, i int) int {
	end := scan.Tight.Value(c.data, i, decodeDepth-c.depth)
	if end < 0 || !validText(c.text[i:end]) {
		return -1
	}
	return end
}

func checkScalar(c *checking, i int) int {
	if c.at(i) == '"' {
		return checkText(c, i)
	}
	return scan.Tight.Value(c.data, i, 0)
}

// rising is object for names that must rise.
func (c *checking) rising(i int, value func(name string) checker) int {
	last, first := "", true
	return c.object(i, func(name string) checker {
		if !first && name <= last {
			return nil
		}
		last, first = name, false
		return value(name)
	})
}

// object checks members; value says how that of a name is checked, nil for not at all.
func (c *checking) object(i int, value func(name string) checker) int {
	if c.depth == decodeDepth {
		return -1
	}
	c.depth++
	end := scan.Tight.Members(c.data, i, func(n scan.Name, at int) (int, bool) {
		name := c.text[n.At+1 : n.End-1]
		if n.Has != 0 && (n.Has&scan.Escaped != 0 || !utf8.ValidString(name)) {
			return -1, false
		}
		check := value(name)
		if check == nil {
			return -1, false
		}
		return check(c, at), true
	})
	c.depth--
	return end
}

func (c *checking) array(i int, elem checker) int {
	if c.depth == decodeDepth {
		return -1
	}
	c.depth++
	end := scan.Tight.Elements(c.data, i, func(at int) (int, bool) { return elem(c, at), true })
	c.depth--
	return end
}

// at is the byte at an index, or 0.
func (c *checking) at(i int) byte {
	if i < len(c.text) {
		return c.text[i]
	}
	return 0
}

func (c *checking) word(i int, w string) int { return scan.Word(c.data, i, w) }

// str checks a string; plain says that it has no escapes.
func (c *checking) str(i int) (end int, plain bool) {
	end, has := scan.String(c.data, i)
	if end < 0 || has != 0 && !validText(c.text[i:end]) {
		return -1, false
	}
	return end, has&scan.Escaped == 0
}

// validText refuses what decoding would not leave as it is: invalid UTF-8, and escapes that may be
// surrogates.
func validText(literal string) bool {
	return utf8.ValidString(literal) && !strings.Contains(literal, `\ud`) && !strings.Contains(literal, `\uD`)
}

func checkText(c *checking, i int) int {
	end, _ := c.str(i)
	return end
}

// text checks a string without escapes, and keeps it.
func text(of func(*Identity) *string) checker {
	return func(c *checking, i int) int {
		end, plain := c.str(i)
		if end < 0 || !plain {
			return -1
		}
		*of(&c.id) = c.text[i+1 : end-1]
		return end
	}
}

func integerChecker(bits int) checker {
	return func(c *checking, i int) int {
		start := i
		if c.at(i) == '-' {
			i++
		}
		for c.at(i) >= '0' && c.at(i) <= '9' {
			i++
		}
		digits := strings.TrimPrefix(c.text[start:i], "-")
		if len(digits) > 1 && digits[0] == '0' {
			return -1
		}
		if _, err := strconv.ParseInt(c.text[start:i], 10, bits); err != nil {
			return -1
		}
		return i
	}
}

func timeChecker(layout string) checker {
	return orNull(func(c *checking, i int) int {
		end, plain := c.str(i)
		if end < 0 || !plain {
			return -1
		}
		if _, err := time.Parse(layout, c.text[i+1:end-1]); err != nil {
			return -1
		}
		return end
	})
}

func checkQuantity(c *checking, i int) int {
	end, plain := c.str(i)
	if end < 0 || !plain {
		return -1
	}
	text := c.text[i+1 : end-1]
	if simple(text) {
		return end
	}
	if !quantities.Fits(text) {
		return -1
	}
	if _, err := resource.ParseQuantity(text); err != nil {
		return -1
	}
	return end
}

// simple knows the quantities that are most of all: few digits, and a suffix.
func simple(text string) bool {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n == 0 || n > 15 {
		return false
	}
	switch text[n:] {
	case "", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti":
		return true
	}
	return false
}

func checkBase64(c *checking, i int) int {
	end, plain := c.str(i)
	if end < 0 || !plain {
		return -1
	}
	text := c.text[i+1 : end-1]
	if len(text)%4 != 0 {
		return -1
	}
	if digits := strings.TrimSuffix(text, "="); digits != text {
		text = strings.TrimSuffix(digits, "=")
	}
	for j := range len(text) {
		b := text[j]
		if !(b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '+' || b == '/') {
			return -1
		}
	}
	return end
}
