package tagged

import (
	"fmt"
	"reflect"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"
)

var text = codec{
	protowire.BytesType,
	func(dst []byte, number protowire.Number, v reflect.Value) ([]byte, error) {
		return protowire.AppendString(protowire.AppendTag(dst, number, protowire.BytesType), v.String()), nil
	},
	func(value []byte, v reflect.Value) error {
		v.SetString(string(value))
		return nil
	},
}

// blob is a field of bytes, which are absent where they are nil.
var blob = codec{
	protowire.BytesType,
	func(dst []byte, number protowire.Number, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return dst, nil
		}
		return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), v.Bytes()), nil
	},
	func(value []byte, v reflect.Value) error {
		v.SetBytes(append([]byte{}, value...))
		return nil
	},
}

func varint(get func(reflect.Value) uint64, set func(reflect.Value, uint64)) codec {
	return codec{
		protowire.VarintType,
		func(dst []byte, number protowire.Number, v reflect.Value) ([]byte, error) {
			return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), get(v)), nil
		},
		func(value []byte, v reflect.Value) error {
			n, _ := protowire.ConsumeVarint(value)
			set(v, n)
			return nil
		},
	}
}

// message returns a message within the message.
func message(content func([]byte, reflect.Value) ([]byte, error), read func([]byte, reflect.Value) error) codec {
	return codec{
		protowire.BytesType,
		func(dst []byte, number protowire.Number, v reflect.Value) ([]byte, error) {
			dst = append(protowire.AppendTag(dst, number, protowire.BytesType), 0)
			at := len(dst)
			dst, err := content(dst, v)
			return Measured(dst, at), err
		},
		read,
	}
}

// optional returns the codec of a field that is absent if its pointer is nil.
func optional(of codec) codec {
	return codec{
		of.wire,
		func(dst []byte, number protowire.Number, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return dst, nil
			}
			return of.append(dst, number, v.Elem())
		},
		func(value []byte, v reflect.Value) error {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			return of.read(value, v.Elem())
		},
	}
}

// listed returns a message of the elements of a list, which is absent where the list is nil.
func listed(of codec) codec {
	return codec{
		of.wire,
		func(dst []byte, number protowire.Number, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return dst, nil
			}
			return of.append(dst, number, v)
		},
		func(value []byte, v reflect.Value) error {
			if v.IsNil() {
				v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			}
			return of.read(value, v)
		},
	}
}

func repeated(of codec) codec {
	return codec{
		of.wire,
		func(dst []byte, number protowire.Number, v reflect.Value) (_ []byte, err error) {
			for i := range v.Len() {
				if dst, err = of.append(dst, number, v.Index(i)); err != nil {
					return dst, err
				}
			}
			return dst, nil
		},
		func(value []byte, v reflect.Value) error {
			n := v.Len()
			if n == v.Cap() {
				v.Grow(1)
			}
			v.SetLen(n + 1)
			v.Index(n).SetZero()
			return of.read(value, v.Index(n))
		},
	}
}

// mapped returns a map with texts as keys: a message of key and value for each entry.
func mapped(t reflect.Type, of codec) codec {
	const key, value protowire.Number = 1, 2
	return codec{
		protowire.BytesType,
		func(dst []byte, number protowire.Number, v reflect.Value) (_ []byte, err error) {
			keys := v.MapKeys()
			sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
			element := reflect.New(t.Elem()).Elem()
			for _, k := range keys {
				dst = append(protowire.AppendTag(dst, number, protowire.BytesType), 0)
				at := len(dst)
				if dst, err = text.append(dst, key, k); err != nil {
					return dst, err
				}
				element.Set(v.MapIndex(k))
				if dst, err = of.append(dst, value, element); err != nil {
					return dst, err
				}
				dst = Measured(dst, at)
			}
			return dst, nil
		},
		func(data []byte, v reflect.Value) error {
			k, element := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			if t.Elem().Kind() == reflect.Slice {
				element.Set(reflect.MakeSlice(t.Elem(), 0, 0)) // bytes that are missing are empty, and not nil
			}
			if err := eachField("map entry", data, func(number protowire.Number, kind protowire.Type, content []byte) error {
				switch {
				case number == key && kind == protowire.BytesType:
					return text.read(content, k)
				case number == value && kind == of.wire:
					element.SetZero()
					return of.read(content, element)
				case number == key || number == value:
					return fmt.Errorf("proto: wrong wireType = %d in an entry of a map", kind)
				}
				return nil
			}); err != nil {
				return err
			}
			if v.IsNil() {
				v.Set(reflect.MakeMap(t))
			}
			v.SetMapIndex(k, element)
			return nil
		},
	}
}
