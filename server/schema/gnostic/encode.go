// Package gnostic encodes OpenAPI documents in the Protobuf forms that discovery clients request, the messages of
// gnostic's packages openapi.v2 and openapi.v3. It takes the JSON of a document, and costs memory and time in
// proportion to it. gnostic itself parses the JSON as YAML, and its parsers take half a megabyte of the
// binary; tests compare both.
package gnostic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

type object = map[string]any

// Encode encodes a document of OpenAPI 3. It fails for a member that the messages have no field for.
func Encode(document []byte) ([]byte, error) {
	return encode("an OpenAPI 3 document", documentMessage, document, false)
}

// EncodeSwagger encodes a document of OpenAPI 2, or some members of one. Other servers' documents become parts of it: it leaves out
// members that the messages have no field for, or that have values of another type.
func EncodeSwagger(document []byte) ([]byte, error) {
	return encode("an OpenAPI 2 document", swaggerMessage, document, true)
}

// EncodeSwaggerSchema encodes a schema of OpenAPI 2, as EncodeSwagger does.
func EncodeSwaggerSchema(schema []byte) ([]byte, error) {
	return encode("an OpenAPI 2 schema", swaggerSchemaMessage, schema, true)
}

func encode(what string, m message, text []byte, lax bool) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", what, err)
	}
	w := &writer{buf: make([]byte, len(text)), at: len(text), lax: lax}
	w.message("the document", m, v)
	if w.err != nil {
		return nil, fmt.Errorf("encoding %s: %w", what, w.err)
	}
	return w.buf[w.at:], nil
}

// writer writes from the end to the start: the length of a message, which precedes it, is known once it
// is written. So nothing is written twice, however deep messages are nested.
type writer struct {
	buf []byte // from at
	at  int
	err error // the first one
	lax bool  // members that do not fit are left out
}

// take returns room for n bytes before the written ones.
func (w *writer) take(n int) []byte {
	if w.at < n {
		written := w.buf[w.at:]
		grown := make([]byte, 2*len(w.buf)+n)
		w.at = len(grown) - len(written)
		copy(grown[w.at:], written)
		w.buf = grown
	}
	w.at -= n
	return w.buf[w.at : w.at+n]
}

func (w *writer) varint(v uint64) { protowire.AppendVarint(w.take(protowire.SizeVarint(v))[:0], v) }

func (w *writer) tag(number protowire.Number, typ protowire.Type) {
	w.varint(protowire.EncodeTag(number, typ))
}

func (w *writer) text(number protowire.Number, s string) {
	w.delimited(number, func() { copy(w.take(len(s)), s) })
}

// delimited writes a length-delimited field. write writes its value.
func (w *writer) delimited(number protowire.Number, write func()) {
	end := len(w.buf) - w.at
	write()
	w.varint(uint64(len(w.buf) - w.at - end))
	w.tag(number, protowire.BytesType)
}

func (w *writer) boolean(number protowire.Number, b bool) {
	w.varint(protowire.EncodeBool(b))
	w.tag(number, protowire.VarintType)
}

func (w *writer) double(number protowire.Number, v float64) {
	protowire.AppendFixed64(w.take(8)[:0], math.Float64bits(v))
	w.tag(number, protowire.Fixed64Type)
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// misfit fails for a member that does not fit the messages, unless such members are left out.
func (w *writer) misfit(format string, args ...any) {
	if !w.lax {
		w.fail(format, args...)
	}
}

// message writes the fields of a message, the value of a member.
func (w *writer) message(name string, m message, v any) {
	members, ok := v.(object)
	if !ok && v != nil { // null is encoded as an empty object
		w.misfit("%s has a value of type %T", name, v)
		return
	}
	l := &layouts[m]
	if l.choose != nil {
		f := l.choose(members)
		f.key = name
		w.field(f, v)
		return
	}
	known := 0
	if l.extensions != 0 || l.entries.number != 0 {
		known = w.named(l, members)
	}
	for _, f := range slices.Backward(l.fields) {
		if value, ok := members[f.key]; ok {
			known++
			w.field(f, value)
		}
	}
	// A reference has fields for its summary and description; its other members are ignored.
	if known < len(members) && m != referenceMessage {
		w.misfit("%s: one of the members %q has no field", name, slices.Sorted(maps.Keys(members)))
	}
}

// named writes extensions and, if any name is allowed, entries: messages of a name and a value. It returns their
// number.
func (w *writer) named(l *layout, members object) (n int) {
	var extensions, entries []string
	for name := range members {
		switch {
		case l.extensions != 0 && strings.HasPrefix(name, "x-"):
			extensions = append(extensions, name)
		case l.entries.number != 0 && !slices.ContainsFunc(l.fields, func(f field) bool { return f.key == name }):
			entries = append(entries, name)
		}
	}
	write := func(number protowire.Number, names []string, value field) {
		slices.Sort(names)
		for _, name := range slices.Backward(names) {
			value.key = name
			w.delimited(number, func() {
				w.field(value, members[name])
				w.field(field{number: 1, shape: text}, name)
			})
		}
	}
	write(l.extensions, extensions, field{number: 2, shape: yaml})
	write(l.entries.number, entries, field{number: 2, shape: l.entries.shape, of: l.entries.of})
	return len(extensions) + len(entries)
}

// field writes a field. Those that are empty, zero or false are left out, as Protobuf does.
func (w *writer) field(f field, v any) {
	switch f.shape {
	case text:
		if s := as[string](w, f, v); s != "" {
			w.text(f.number, s)
		}
	case boolean:
		if as[bool](w, f, v) {
			w.boolean(f.number, true)
		}
	case integer:
		digits := as[json.Number](w, f, v)
		if digits == "" {
			return
		}
		n, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			w.fail("%s: %w", f.key, err)
		}
		if n != 0 {
			w.varint(uint64(n))
			w.tag(f.number, protowire.VarintType)
		}
	case double:
		digits := as[json.Number](w, f, v)
		if digits == "" {
			return
		}
		if n := w.number(f, digits); math.Float64bits(n) != 0 {
			w.double(f.number, n)
		}
	case textWithin:
		w.delimited(f.number, func() { w.field(field{f.key, 1, text, 0}, v) })
	case texts:
		for _, item := range slices.Backward(as[[]any](w, f, v)) {
			w.text(f.number, as[string](w, f, item))
		}
	case textList:
		w.delimited(f.number, func() { w.field(field{f.key, 1, texts, 0}, v) })
	case yaml:
		w.delimited(f.number, func() { w.text(2, w.yaml(v)) })
	case one:
		w.delimited(f.number, func() { w.message(f.key, f.of, v) })
	case yamls, many:
		item := field{f.key, f.number, yaml, 0}
		if f.shape == many {
			item = field{f.key, f.number, one, f.of}
		}
		for _, v := range slices.Backward(as[[]any](w, f, v)) {
			w.field(item, v)
		}
	case within:
		w.delimited(f.number, func() { w.field(field{f.key, 1, one, f.of}, v) })
	case expression:
		w.delimited(f.number, func() { w.field(field{f.key, 2, one, f.of}, v) })
	case additional:
		if b, is := v.(bool); is {
			w.delimited(f.number, func() { w.boolean(2, b) })
			return
		}
		w.field(field{f.key, f.number, within, f.of}, v)
	case defaultValue:
		w.delimited(f.number, func() { w.defaultValue(f, v) })
	}
}

// defaultValue writes a default. The message has no field for objects, lists and null, and is empty then.
func (w *writer) defaultValue(f field, v any) {
	switch v := v.(type) {
	case json.Number:
		w.double(1, w.number(f, v))
	case bool:
		w.boolean(2, v)
	case string:
		w.text(3, v)
	}
}

func as[T any](w *writer, f field, v any) T {
	t, ok := v.(T)
	if !ok {
		w.misfit("%s has a value of type %T", f.key, v)
	}
	return t
}

func (w *writer) number(f field, n json.Number) float64 {
	v, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		w.fail("%s: %w", f.key, err)
	}
	return v
}

// yaml returns a value as YAML text.
func (w *writer) yaml(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		w.fail("%w", err)
	}
	return string(YAML(text)) + "\n"
}

// YAML returns JSON as YAML text: with the characters escaped that YAML does not allow.
func YAML(value []byte) []byte {
	if !bytes.ContainsFunc(value, escaped) {
		return value
	}
	out := make([]byte, 0, len(value)+16)
	for _, r := range string(value) {
		if escaped(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// escaped reports whether YAML requires that a character is escaped, and JSON does not.
func escaped(r rune) bool {
	return 0x7f <= r && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
