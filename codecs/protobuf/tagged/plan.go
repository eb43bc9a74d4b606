package tagged

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// plan reads and writes the messages of a struct.
type plan struct {
	name   string
	fields []field // in the order of their numbers
}

type field struct {
	number protowire.Number
	name   string // in Go
	index  int    // in the struct
	codec  codec
}

// codec reads and writes the values of a type as a field.
type codec struct {
	wire protowire.Type
	// append appends a value with its tag, and nothing where there is none.
	append func(dst []byte, number protowire.Number, v reflect.Value) ([]byte, error)
	// read reads one more value of the field: its content, without its length.
	read func(value []byte, v reflect.Value) error
}

// unpack reads repeated numbers that are packed: one after another in a single field.
func (c *codec) unpack(numbers []byte, v reflect.Value) error {
	for len(numbers) > 0 {
		_, n := protowire.ConsumeVarint(numbers)
		if n < 0 {
			return broken("packed field", n)
		}
		if err := c.read(numbers[:n], v); err != nil {
			return err
		}
		numbers = numbers[n:]
	}
	return nil
}

var plans sync.Map // reflect.Type -> *plan; nil for a type without a plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := newPlan(t, nil)
	plans.Store(t, p)
	return p
}

// newPlan returns nil for a type without messages. Types within are being planned.
func newPlan(t reflect.Type, within []reflect.Type) *plan {
	if t.Kind() != reflect.Struct || slices.Contains(within, t) {
		return nil
	}
	within = append(slices.Clip(within), t)
	p := &plan{name: t.Name()}
	for i := range t.NumField() {
		f := t.Field(i)
		number := Number(f)
		if number == 0 && f.Anonymous && f.Name == "TypeMeta" {
			continue // the envelope has it
		}
		c, ok := fieldCodec(f.Type, within)
		if number == 0 || !ok || !f.IsExported() {
			return nil
		}
		p.fields = append(p.fields, field{number, f.Name, i, c})
	}
	sort.Slice(p.fields, func(i, j int) bool { return p.fields[i].number < p.fields[j].number })
	return p
}

// Number returns the number that the tag of a field gives it in messages; 0: none.
func Number(f reflect.StructField) protowire.Number {
	_, rest, _ := strings.Cut(f.Tag.Get("protobuf"), ",")
	text, _, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseInt(text, 10, 32)
	if number := protowire.Number(n); err == nil && number.IsValid() {
		return number
	}
	return 0
}

// append appends a message, without tag and length.
func (p *plan) append(dst []byte, v reflect.Value) (_ []byte, err error) {
	for i := range p.fields {
		f := &p.fields[i]
		if dst, err = f.codec.append(dst, f.number, v.Field(f.index)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// read reads a message into a struct.
func (p *plan) read(data []byte, v reflect.Value) error {
	return eachField(p.name, data, func(number protowire.Number, kind protowire.Type, value []byte) error {
		for i := range p.fields {
			if f := &p.fields[i]; f.number == number {
				into := v.Field(f.index)
				switch {
				case f.codec.wire == kind:
					return f.codec.read(value, into)
				case f.codec.wire == protowire.VarintType && kind == protowire.BytesType && into.Kind() == reflect.Slice:
					return f.codec.unpack(value, into)
				}
				return fmt.Errorf("proto: wrong wireType = %d for field %s", kind, f.name)
			}
		}
		return nil
	})
}

// eachField calls read for the fields of a message, with the content of each.
func eachField(name string, data []byte, read func(protowire.Number, protowire.Type, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return broken(name, n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return broken(name, n)
		}
		value := data[:n]
		data = data[n:]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if err := read(number, kind, value); err != nil {
			return err
		}
	}
	return nil
}

func broken(name string, n int) error {
	err := protowire.ParseError(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("proto: %s: %w", name, err)
}

// fieldCodec returns the codec of a field that may be absent or repeated.
func fieldCodec(t reflect.Type, within []reflect.Type) (codec, bool) {
	if c, ok := single(t, within); ok {
		return c, true
	}
	switch t.Kind() {
	case reflect.Pointer:
		c, ok := single(t.Elem(), within)
		return optional(c), ok
	case reflect.Slice:
		c, ok := single(t.Elem(), within)
		return repeated(c), ok
	case reflect.Map:
		c, ok := single(t.Elem(), within)
		return mapped(t, c), ok && t.Key().Kind() == reflect.String
	}
	return codec{}, false
}

// single returns the codec of one value.
func single(t reflect.Type, within []reflect.Type) (codec, bool) {
	if generated(reflect.PointerTo(t)) {
		c := message(
			func(dst []byte, v reflect.Value) ([]byte, error) {
				return appendGenerated(dst, v.Addr().Interface().(Generated))
			},
			func(value []byte, v reflect.Value) error { return v.Addr().Interface().(Generated).Unmarshal(value) },
		)
		if t.Kind() == reflect.Slice {
			c = listed(c)
		}
		return c, true
	}
	switch t.Kind() {
	case reflect.String:
		return text, true
	case reflect.Bool:
		return varint(
			func(v reflect.Value) uint64 { return protowire.EncodeBool(v.Bool()) },
			func(v reflect.Value, n uint64) { v.SetBool(n != 0) },
		), true
	case reflect.Int32, reflect.Int64:
		return varint(
			func(v reflect.Value) uint64 { return uint64(v.Int()) },
			func(v reflect.Value, n uint64) {
				if v.Kind() == reflect.Int32 {
					n = uint64(int32(n))
				}
				v.SetInt(int64(n))
			},
		), true
	case reflect.Slice:
		return blob, t.Elem().Kind() == reflect.Uint8
	case reflect.Struct:
		p := newPlan(t, within)
		if p == nil {
			return codec{}, false
		}
		return message(p.append, p.read), true
	}
	return codec{}, false
}
