package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// wireNumbers are the fields of numbers and flags, in their order in the message.
var wireNumbers = [...]struct {
	keyword
	field protowire.Number
}{
	{keywordExclusiveMaximum, 8}, {keywordExclusiveMinimum, 10}, {keywordMaxItems, 14}, {keywordMaxLength, 11}, {keywordMaxProperties, 17}, {keywordMaximum, 7},
	{keywordMinItems, 15}, {keywordMinLength, 12}, {keywordMinProperties, 18}, {keywordMinimum, 9}, {keywordMultipleOf, 6}, {keywordUniqueItems, 16},
}

// wireTexts are the fields of strings, likewise.
var wireTexts = [...]struct {
	keyword
	field protowire.Number
}{{keywordFormat, 2}, {keywordTitle, 3}, {keywordDescription, 4}, {keywordPattern, 13}}

const wireExtension protowire.Number = 31

// appendWire appends the message with the contents of appendJSON.
func (o *outline) appendWire(b []byte, marks rootMarks) []byte {
	if !o.root.has(keywordPreserve) {
		return o.schemaWire(b, o.root, &marks)
	}
	b = message(b, 22, text(nil, 1, "object"))
	kinds := marks.kinds
	if kinds == nil {
		kinds = []byte("null")
	}
	b = extensionWire(b, gvkExtension, func(b []byte) []byte { return append(b, kinds...) })
	return extensionWire(b, selectableExtension, func(b []byte) []byte { return append(b, marks.selectable...) })
}

// schemaWire appends a schema; marks are nil below the root.
func (o *outline) schemaWire(b []byte, s *outlined, marks *rootMarks) []byte {
	for _, f := range wireTexts {
		if s.has(f.keyword) {
			b = stringWire(b, f.field, o.in(s.places[f.keyword]))
		}
	}
	for _, f := range wireNumbers {
		if s.has(f.keyword) {
			b = o.numberWire(b, f.keyword, f.field, s.places[f.keyword])
		}
	}
	if s.has(keywordRequired) {
		for name := range s.required(o.text) {
			b = stringWire(b, 19, name)
		}
	}
	if s.has(keywordEnum) {
		scan.Loose.Elements(o.text, int(s.places[keywordEnum].at), func(at int) (end int, more bool) {
			b = nested(b, 20, func(b []byte) []byte {
				return nested(b, 2, func(b []byte) []byte {
					b, end = o.scalarJSON(b, at)
					return append(b, '\n')
				})
			})
			return end, true
		})
	}
	b = o.partsWire(b, s)
	for k := keywordEmbedded; k < keywordCount; k++ {
		isMark := k == keywordKinds || k == keywordSelectable
		if isMark && marks == nil || k == keywordKinds && marks.kinds == nil || !isMark && !s.has(k) {
			continue
		}
		b = extensionWire(b, keywordNames[k], func(b []byte) []byte {
			switch k {
			case keywordKinds:
				return append(b, marks.kinds...)
			case keywordSelectable:
				return append(b, marks.selectable...)
			}
			return o.valueJSON(b, k, s.places[k])
		})
	}
	return b
}

// partsWire appends the fields about parts of values and their types.
func (o *outline) partsWire(b []byte, s *outlined) []byte {
	if s.has(keywordAdditional) {
		b = nested(b, 21, func(b []byte) []byte {
			if s.values != nil {
				return nested(b, 1, func(b []byte) []byte { return o.schemaWire(b, s.values, nil) })
			}
			return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeBool(o.text[s.places[keywordAdditional].at] == 't'))
		})
	}
	if s.has(keywordType) {
		b = nested(b, 22, func(b []byte) []byte { return stringWire(b, 1, o.in(s.places[keywordType])) })
	}
	if s.has(keywordItems) {
		b = nested(b, 23, func(b []byte) []byte {
			return nested(b, 1, func(b []byte) []byte { return o.schemaWire(b, s.items, nil) })
		})
	}
	if !s.has(keywordProperties) {
		return b
	}
	return nested(b, 25, func(b []byte) []byte {
		for i := range s.properties {
			p := &s.properties[i]
			b = nested(b, 1, func(b []byte) []byte {
				if len(p.name) > 0 {
					b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), p.name)
				}
				return nested(b, 2, func(b []byte) []byte {
					if p.of == nil {
						return append(b, p.fixed.wire...)
					}
					return o.schemaWire(b, p.of, nil)
				})
			})
		}
		return b
	})
}

func (o *outline) numberWire(b []byte, k keyword, field protowire.Number, p place) []byte {
	switch k {
	case keywordMaximum, keywordMinimum, keywordMultipleOf:
		f, _ := strconv.ParseFloat(string(o.in(p)), 64) // as it was when it was read
		return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(f))
	case keywordExclusiveMaximum, keywordExclusiveMinimum, keywordUniqueItems:
		return boolean(b, field, true)
	}
	n, _ := strconv.ParseInt(string(o.in(p)), 10, 64)
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

// stringWire appends the text of a literal, unless it is empty.
func stringWire(b []byte, field protowire.Number, literal []byte) []byte {
	inside := literal[1 : len(literal)-1]
	switch {
	case len(inside) == 0:
		return b
	case bytes.IndexByte(inside, '\\') >= 0 || !isStandardForm(inside):
		return text(b, field, scan.Unquote(literal))
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), inside)
}

func extensionWire(b []byte, name string, value func(b []byte) []byte) []byte {
	return nested(b, wireExtension, func(b []byte) []byte {
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), name)
		return nested(b, 2, func(b []byte) []byte {
			return nested(b, 2, func(b []byte) []byte { return append(value(b), '\n') })
		})
	})
}

// nested appends a message in place: its contents move behind its length once that is known.
func nested(b []byte, field protowire.Number, of func(b []byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	at := len(b)
	b = of(b)
	n := len(b) - at
	var room [10]byte
	b = append(b, room[:protowire.SizeVarint(uint64(n))]...)
	copy(b[len(b)-n:], b[at:at+n])
	protowire.AppendVarint(b[:at], uint64(n))
	return b
}

// listed returns a definition of a part in the message of definitions.
func listed(b []byte, name string, of func(b []byte) []byte) []byte {
	return nested(b, 1, func(b []byte) []byte {
		b = text(b, 1, name)
		return nested(b, 2, of)
	})
}

// decoded returns a schema as gnosticWriter takes it.
func decoded(encoded []byte) (tree, error) {
	dec := json.NewDecoder(bytes.NewReader(encoded))
	dec.UseNumber()
	var out tree
	return out, dec.Decode(&out)
}
