// Package wire encodes and decodes the Protobuf form of the types that stand below package removed. It
// writes the bytes that the generated code of k8s.io/api writes: fields in the order of their numbers,
// values that are no pointers even where they are zero, maps sorted by their keys.
package wire

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Message is what the generated types of k8s.io/api can do.
type Message interface {
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
}

// pointer is a pointer to a T that is a Message.
type pointer[T any] interface {
	*T
	Message
}

// Field is a field of a message, with as many values as it has in the message at hand.
type Field struct {
	number protowire.Number
	kind   protowire.Type
	count  int
	size   func(i int) int
	write  func(i int, data []byte) (int, error) // to the end of data
	read   func(value []byte) error              // the content of one more value, without its length
}

// String is a field of text.
func String[T ~string](number protowire.Number, p *T) Field {
	return Field{
		number, protowire.BytesType, 1,
		func(int) int { return len(*p) },
		func(_ int, data []byte) (int, error) { return atEnd(data, string(*p)), nil },
		func(value []byte) error { *p = T(value); return nil },
	}
}

// OptionalString is a field of text that may be absent.
func OptionalString[T ~string](number protowire.Number, p **T) Field {
	return optional(number, p, String)
}

// Strings is a list of texts.
func Strings(number protowire.Number, p *[]string) Field {
	return Field{
		number, protowire.BytesType, len(*p),
		func(i int) int { return len((*p)[i]) },
		func(i int, data []byte) (int, error) { return atEnd(data, (*p)[i]), nil },
		func(value []byte) error { *p = append(*p, string(value)); return nil },
	}
}

// Int is a field with a number.
func Int[T ~int32 | ~int64](number protowire.Number, p *T) Field {
	return varint(number, func() uint64 { return uint64(*p) }, func(v uint64) { *p = T(v) })
}

// OptionalInt is a field with a number that may be absent.
func OptionalInt[T ~int32 | ~int64](number protowire.Number, p **T) Field {
	return optional(number, p, Int)
}

// Bool is a field that is true or false.
func Bool(number protowire.Number, p *bool) Field {
	return varint(number, func() uint64 { return protowire.EncodeBool(*p) }, func(v uint64) { *p = v != 0 })
}

// OptionalBool is a field that is true, false or absent.
func OptionalBool(number protowire.Number, p **bool) Field { return optional(number, p, Bool) }

func varint(number protowire.Number, get func() uint64, set func(uint64)) Field {
	return Field{
		number, protowire.VarintType, 1,
		func(int) int { return protowire.SizeVarint(get()) },
		func(_ int, data []byte) (int, error) {
			return atEnd(data, string(protowire.AppendVarint(nil, get()))), nil
		},
		func(value []byte) error {
			v, n := protowire.ConsumeVarint(value)
			set(v)
			return protowire.ParseError(min(n, 0))
		},
	}
}

// Part is a message within the message.
func Part(number protowire.Number, m Message) Field {
	return Field{
		number, protowire.BytesType, 1,
		func(int) int { return m.Size() },
		func(_ int, data []byte) (int, error) { return m.MarshalToSizedBuffer(data) },
		m.Unmarshal,
	}
}

// OptionalPart is a message that may be absent.
func OptionalPart[T any, P pointer[T]](number protowire.Number, p **T) Field {
	return optional(number, p, func(number protowire.Number, m *T) Field { return Part(number, P(m)) })
}

// Parts is a list of messages.
func Parts[T any, P pointer[T]](number protowire.Number, p *[]T) Field {
	return Field{
		number, protowire.BytesType, len(*p),
		func(i int) int { return P(&(*p)[i]).Size() },
		func(i int, data []byte) (int, error) { return P(&(*p)[i]).MarshalToSizedBuffer(data) },
		func(value []byte) error {
			*p = append(*p, *new(T))
			return P(&(*p)[len(*p)-1]).Unmarshal(value)
		},
	}
}

// Map has messages by names.
func Map[K ~string, T any, P pointer[T]](number protowire.Number, p *map[K]T) Field {
	keys := slices.Sorted(maps.Keys(*p))
	entry := func(i int) []Field {
		value := (*p)[keys[i]]
		return []Field{String(1, &keys[i]), Part(2, P(&value))}
	}
	return Field{
		number, protowire.BytesType, len(keys),
		func(i int) int { return Size(entry(i)) },
		func(i int, data []byte) (int, error) { return Marshal(data, entry(i)) },
		func(data []byte) error {
			var key K
			var value T
			if err := Unmarshal(data, "map entry", []Field{String(1, &key), Part(2, P(&value))}); err != nil {
				return err
			}
			if *p == nil {
				*p = map[K]T{}
			}
			(*p)[key] = value
			return nil
		},
	}
}

// optional is a field without a value where p points to nil.
func optional[T any](number protowire.Number, p **T, of func(protowire.Number, *T) Field) Field {
	if *p != nil {
		return of(number, *p)
	}
	f := of(number, new(T))
	f.count = 0
	f.read = func(value []byte) error {
		if *p == nil {
			*p = new(T)
		}
		return of(number, *p).read(value)
	}
	return f
}

// Size is the length of a message.
func Size(fields []Field) (n int) {
	for _, f := range fields {
		for i := range f.count {
			size := f.size(i)
			n += protowire.SizeTag(f.number) + size
			if f.kind == protowire.BytesType {
				n += protowire.SizeVarint(uint64(size))
			}
		}
	}
	return n
}

// Marshal writes a message to the end of data. It returns the length of the message.
func Marshal(data []byte, fields []Field) (int, error) {
	end := len(data)
	for _, f := range slices.Backward(fields) {
		for i := f.count - 1; i >= 0; i-- {
			n, err := f.write(i, data[:end])
			if err != nil {
				return 0, err
			}
			end -= n
			head := protowire.AppendTag(nil, f.number, f.kind)
			if f.kind == protowire.BytesType {
				head = protowire.AppendVarint(head, uint64(n))
			}
			end -= atEnd(data[:end], string(head))
		}
	}
	return len(data) - end, nil
}

// Whole is a message in a buffer of its own.
func Whole(m Message) ([]byte, error) {
	data := make([]byte, m.Size())
	n, err := m.MarshalToSizedBuffer(data)
	return data[len(data)-n:], err
}

// Copy reads into out, which is empty, what a message of m has, and returns out.
func Copy[M Message](out, m M) M {
	data, err := Whole(m)
	if err == nil {
		err = out.Unmarshal(data)
	}
	if err != nil {
		panic(err) // a message that was just written
	}
	return out
}

// Unmarshal reads a message of the type name. Fields that are not among the given ones are dropped.
func Unmarshal(data []byte, name string, fields []Field) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return broken(name, n)
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, kind, data)
		if n < 0 {
			return broken(name, n)
		}
		value := data[:n]
		data = data[n:]
		i := slices.IndexFunc(fields, func(f Field) bool { return f.number == number })
		switch {
		case i < 0:
			continue
		case kind != fields[i].kind:
			return fmt.Errorf("proto: wrong wireType = %d for field %d of %s", kind, number, name)
		case kind == protowire.BytesType:
			value, _ = protowire.ConsumeBytes(value)
		}
		if err := fields[i].read(value); err != nil {
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

func atEnd(data []byte, text string) int { return copy(data[len(data)-len(text):], text) }
