// Package tagged encodes and decodes Protobuf messages of API types by the tags of their fields, for types
// without generated methods, such as those below server/removed and the former versions that server/transfer
// reads.
//
// The bytes are those of generated methods: fields in the order of their numbers, values other than pointers
// even if they are zero, maps sorted by their keys. It refuses what generated methods refuse, and some broken
// messages that they do not detect, such as map entries with other wire types. The stack depth of a message
// is that of its type: recursive types are not supported.
package tagged

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Generated are the methods of types with generated code.
type Generated interface {
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
}

// Supports reports whether values behind pointers of a type have messages: they have generated methods, or tags.
func Supports(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && (generated(t) || planOf(t.Elem()) != nil)
}

var methods sync.Map // reflect.Type -> bool, see generated

// generated reports whether a pointer has generated methods. No type of this module has some: those that it seems to have
// are of a type that it embeds.
func generated(t reflect.Type) bool {
	if known, ok := methods.Load(t); ok {
		return known.(bool)
	}
	has := t.Implements(reflect.TypeFor[Generated]()) && !strings.HasPrefix(t.Elem().PkgPath(), "github.com/rowlock/rowlock/")
	methods.Store(t, has)
	return has
}

// Append appends the message of the value to which m points.
func Append(dst []byte, m any) ([]byte, error) {
	g, p, v, err := find(m)
	switch {
	case err != nil:
		return dst, err
	case g != nil:
		return appendGenerated(dst, g)
	}
	return p.append(dst, v)
}

// Unmarshal decodes a message into the value to which m points. It drops unknown fields.
func Unmarshal(data []byte, m any) error {
	g, p, v, err := find(m)
	switch {
	case err != nil:
		return err
	case g != nil:
		return g.Unmarshal(data)
	}
	return p.read(data, v)
}

// find returns the codec of the value to which m points: its methods, or the plan of its type.
func find(m any) (Generated, *plan, reflect.Value, error) {
	t := reflect.TypeOf(m)
	if g, ok := m.(Generated); ok && generated(t) {
		return g, nil, reflect.Value{}, nil
	}
	if !Supports(t) {
		return nil, nil, reflect.Value{}, fmt.Errorf("%T has no message", m)
	}
	return nil, planOf(t.Elem()), reflect.ValueOf(m).Elem(), nil
}

func appendGenerated(dst []byte, g Generated) ([]byte, error) {
	start, size := len(dst), g.Size()
	dst = grow(dst, size)[:start+size]
	n, err := g.MarshalToSizedBuffer(dst[start:])
	if err == nil && n != size {
		err = fmt.Errorf("protobuf message of %T has %d bytes, not %d", g, n, size)
	}
	return dst, err
}

// grow makes room for n bytes: exactly that if dst is empty, as most results are kept.
func grow(dst []byte, n int) []byte {
	if cap(dst) == 0 {
		return make([]byte, 0, n)
	}
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(dst, make([]byte, n)...)[:len(dst)]
}

// Measured inserts the length of the part of dst from an index on before it, where a byte was reserved.
func Measured(dst []byte, at int) []byte {
	n := len(dst) - at
	if n < 0x80 {
		dst[at-1] = byte(n)
		return dst
	}
	var room [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(room[:], uint64(n))
	dst = append(dst, room[1:size]...)
	copy(dst[at-1+size:], dst[at:at+n])
	copy(dst[at-1:], room[:size])
	return dst
}
