package schema

import (
	"bytes"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/schema/gnostic"
)

// wireScalars are the fields of strings, numbers and flags, as package gnostic writes them.
var wireScalars = [...]struct {
	keyword
	field protowire.Number
}{
	{keywordFormat, 2}, {keywordTitle, 3}, {keywordDescription, 4}, {keywordMultipleOf, 6}, {keywordMaximum, 7}, {keywordExclusiveMaximum, 8},
	{keywordMinimum, 9}, {keywordExclusiveMinimum, 10}, {keywordMaxLength, 11}, {keywordMinLength, 12}, {keywordPattern, 13}, {keywordMaxItems, 14},
	{keywordMinItems, 15}, {keywordUniqueItems, 16}, {keywordMaxProperties, 17}, {keywordMinProperties, 18},
}

const wireExtension protowire.Number = 31

// appendWire appends the message with the contents of appendJSON.
func (o *outline) appendWire(b []byte, marks rootMarks) []byte {
	if !o.root.has(keywordPreserve) {
		return o.schemaWire(b, o.root, &marks)
	}
	b = nested(b, 22, func(b []byte) []byte { return textWire(b, 1, "object") })
	kinds := marks.kinds
	if kinds == nil {
		kinds = []byte("null")
	}
	b = extensionWire(b, gvkExtension, func(b []byte) []byte { return append(b, kinds...) })
	return extensionWire(b, selectableExtension, func(b []byte) []byte { return append(b, marks.selectable...) })
}

// schemaWire appends a schema; marks are nil below the root.
func (o *outline) schemaWire(b []byte, s *outlined, marks *rootMarks) []byte {
	for _, f := range wireScalars {
		if s.has(f.keyword) {
			b = o.scalarWire(b, f.keyword, f.field, s.places[f.keyword])
		}
	}
	if s.has(keywordRequired) {
		for name := range s.required(o.text) {
			b = stringWire(b, 19, name)
		}
	}
	if s.has(keywordEnum) {
		scan.Loose.Elements(o.text, int(s.places[keywordEnum].at), func(at int) (end int, more bool) {
			b = yamlWire(b, 20, func(b []byte) []byte {
				b, end = o.scalarJSON(b, at)
				return b
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

// scalarWire appends a field, unless it is zero.
func (o *outline) scalarWire(b []byte, k keyword, field protowire.Number, p place) []byte {
	switch k {
	case keywordFormat, keywordTitle, keywordDescription, keywordPattern:
		return stringWire(b, field, o.in(p))
	case keywordMaximum, keywordMinimum, keywordMultipleOf:
		f, _ := strconv.ParseFloat(string(o.in(p)), 64) // as it was when it was read
		if bits := math.Float64bits(f); bits != 0 {
			b = protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), bits)
		}
		return b
	}
	n := int64(1) // a flag
	if k != keywordExclusiveMaximum && k != keywordExclusiveMinimum && k != keywordUniqueItems {
		n, _ = strconv.ParseInt(string(o.in(p)), 10, 64)
	}
	if n != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
	}
	return b
}

// stringWire appends the text of a literal.
func stringWire(b []byte, field protowire.Number, literal []byte) []byte {
	inside := literal[1 : len(literal)-1]
	if bytes.IndexByte(inside, '\\') >= 0 || !isStandardForm(inside) {
		return textWire(b, field, scan.Unquote(literal))
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), inside)
}

func textWire(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// yamlWire appends a field of any value, whose JSON value appends.
func yamlWire(b []byte, field protowire.Number, value func(b []byte) []byte) []byte {
	return nested(b, field, func(b []byte) []byte {
		return nested(b, 2, func(b []byte) []byte {
			at := len(b)
			b = value(b)
			return append(append(b[:at], gnostic.YAML(b[at:])...), '\n')
		})
	})
}

func extensionWire(b []byte, name string, value func(b []byte) []byte) []byte {
	return nested(b, wireExtension, func(b []byte) []byte {
		return yamlWire(textWire(b, 1, name), 2, value)
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
	return nested(b, 1, func(b []byte) []byte { return nested(textWire(b, 1, name), 2, of) })
}
