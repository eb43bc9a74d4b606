// Package quantities bounds the cost of parsing quantities of clients.
//
// A quantity is decimal text with a unit or an exponent. The library computes with numbers as long as the exponent
// requires, so that a few bytes ("1e-10000000") keep a processor busy for seconds. This package finds such text where a
// type holds a quantity, in time linear in the size of the input and at hardly any cost without long exponents.
package quantities

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	longest        = 1024 // bytes of text
	exponentDigits = 4    // beyond 10^9999 nothing is measured
)

// Error is an invalid quantity, and its place.
type Error struct{ Path string }

func (e *Error) Error() string {
	at := ""
	if e.Path != "" {
		at = e.Path + ": "
	}
	return fmt.Sprintf("%squantities must have at most %d characters and an exponent of at most %d digits", at, longest, exponentDigits)
}

// Fits reports whether text can be read as a quantity in little time. It need not be
// a quantity at all.
func Fits[T string | []byte](text T) bool {
	if len(text) > longest {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i]|0x20 == 'e' && longExponent(text[i+1:]) {
			return false
		}
	}
	return true
}

// Suspect reports whether data holds, anywhere, text that would not fit. Data in which
// strings may be written with escapes needs no care: the reader of quantities does
// not resolve escapes.
func Suspect(data []byte) bool {
	run := 0
	for i, c := range data {
		switch {
		case c >= '0' && c <= '9':
			run++
			if run > longest/2 {
				return true
			}
			continue
		case c|0x20 == 'e' && i+1 < len(data) && longExponent(data[i+1:min(i+1+longest, len(data))]):
			return true
		case c == '.' || c == '+' || c == '-':
			continue
		}
		run = 0
	}
	return false
}

// longExponent reports whether text starts with an exponent of too many digits. Leading zeros count, because
// no client writes them.
func longExponent[T string | []byte](text T) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	if len(text) <= exponentDigits {
		return false
	}
	for i := range exponentDigits + 1 {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// CheckTree looks at the plain values (maps, lists, strings, numbers) from which a
// value of type t is going to be made. The error is an *Error.
func CheckTree(tree any, t reflect.Type) error { return check(tree, t, "") }

func check(tree any, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == quantityType {
		return checkValue(tree, path)
	}
	if !Holds(t) {
		return nil
	}
	switch v := tree.(type) {
	case map[string]any:
		for key, e := range v {
			elem := member(t, key)
			if elem == nil {
				continue
			}
			if err := check(e, elem, strings.TrimPrefix(path+"."+key, ".")); err != nil {
				return err
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, e := range v {
			if err := check(e, t.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkValue(v any, path string) error {
	ok := true
	switch v := v.(type) {
	case string:
		ok = Fits(v)
	case []byte:
		ok = Fits(v)
	case json.Number:
		ok = Fits(string(v))
	}
	if !ok {
		return &Error{Path: path}
	}
	return nil
}

// CheckJSON looks at the text of which a value of type t is going to be made, repeated
// names included. The error is an *Error; syntax errors are left to the decoder.
func CheckJSON(data []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !Holds(t) || !Suspect(data) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var found *Error
	if err := checkNext(d, t, "", 0); errors.As(err, &found) {
		return found
	}
	return nil
}

// CheckAny looks at JSON of which a decoder makes quantities that does not distinguish the case of names: no string or number in
// it may have the form of a quantity that does not fit. The error is an *Error; syntax errors are left to the decoder.
func CheckAny(data []byte) error {
	if !Suspect(data) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return nil
		}
		text := ""
		switch v := token.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		}
		if !Fits(text) && text[0]|0x20 != 'e' && strings.Trim(text, "0123456789.+-eE") == "" {
			return &Error{}
		}
	}
}

const maxDepth = 10000 // that of the decoders

var errDepth = errors.New("exceeded max depth")

// checkNext checks the next value of d; t is nil where no quantity can follow.
func checkNext(d *json.Decoder, t reflect.Type, path string, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, open := token.(json.Delim)
	if !open {
		if t == quantityType {
			return checkValue(token, path)
		}
		return nil
	}
	for i := 0; d.More(); i++ {
		var elem reflect.Type
		at := ""
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			elem, at = member(t, name), strings.TrimPrefix(path+"."+name, ".")
		} else if t != nil && t.Kind() == reflect.Slice {
			elem, at = t.Elem(), path+"["+strconv.Itoa(i)+"]"
		}
		if err := checkNext(d, elem, at, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing one
	return err
}

// member returns the type of a named member of t, nil if it cannot hold quantities.
func member(t reflect.Type, name string) (elem reflect.Type) {
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Map:
		elem = t.Elem()
	case t.Kind() == reflect.Struct:
		elem = jsonField(t, name)
	}
	if elem == nil || !Holds(elem) {
		return nil
	}
	return elem
}

// jsonField returns the type of the field with a JSON name, nil if there is none.
func jsonField(t reflect.Type, name string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			if found := jsonField(f.Type, name); found != nil {
				return found
			}
		}
		if tag == name {
			return f.Type
		}
	}
	return nil
}

var holds sync.Map // reflect.Type -> bool

// Holds reports whether values of type t can hold quantities.
func Holds(t reflect.Type) bool {
	if known, ok := holds.Load(t); ok {
		return known.(bool)
	}
	found := reaches(t, map[reflect.Type]bool{})
	holds.Store(t, found)
	return found
}

func reaches(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == quantityType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		return reaches(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if reaches(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
