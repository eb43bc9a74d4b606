package schema

import (
	"bytes"
	"slices"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// An outline is the result of one pass over the stored schema of a custom kind: the positions of its parts in
// the text. OpenAPI 2 of the kind is written from it, in the same bytes as by way of the libraries' types
// (docs/design/openapi.md). Rare constructs have no outline, and take that way.

// keyword is a keyword of a schema in OpenAPI 2. The values are in the order of JSON.
type keyword uint8

const (
	keywordAdditional keyword = iota
	keywordDescription
	keywordEnum
	keywordExclusiveMaximum
	keywordExclusiveMinimum
	keywordFormat
	keywordItems
	keywordMaxItems
	keywordMaxLength
	keywordMaxProperties
	keywordMaximum
	keywordMinItems
	keywordMinLength
	keywordMinProperties
	keywordMinimum
	keywordMultipleOf
	keywordPattern
	keywordProperties
	keywordRequired
	keywordTitle
	keywordType
	keywordUniqueItems
	keywordEmbedded
	keywordKinds // not in the text
	keywordIntOrString
	keywordListMapKeys
	keywordListType
	keywordMapType
	keywordPreserve
	keywordSelectable // not in the text
	keywordRules
	keywordCount

	// Fields that OpenAPI 2 lacks, and those that are read and not published.
	keywordNullable keyword = iota
	keywordAlternatives
	keywordNot
	keywordIgnored
)

var keywordNames = [keywordCount]string{
	"additionalProperties", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength",
	"maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern", "properties", "required",
	"title", "type", "uniqueItems", "x-kubernetes-embedded-resource", gvkExtension, "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys",
	"x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields", selectableExtension, "x-kubernetes-validations",
}

// keywords finds those that a stored schema may have.
var keywords = func() map[string]keyword {
	out := map[string]keyword{
		"nullable": keywordNullable, "allOf": keywordAlternatives, "anyOf": keywordAlternatives, "oneOf": keywordAlternatives, "not": keywordNot,
		"default": keywordIgnored, "example": keywordIgnored, "externalDocs": keywordIgnored,
	}
	for k, name := range keywordNames {
		if k := keyword(k); k != keywordKinds && k != keywordSelectable {
			out[name] = k
		}
	}
	return out
}()

// place is the position of a value in a text; zero: nowhere.
type place struct{ at, end int32 }

// outlined is one schema of an outline.
type outlined struct {
	places     [keywordCount]place
	nullable   bool
	embedded   bool // a resource inside of another one
	properties []outlinedProperty
	items      *outlined
	values     *outlined // of additional properties
}

type outlinedProperty struct {
	name  []byte     // as the text has it, without quotes
	of    *outlined  // nil: fixed
	fixed *fixedPart // fields of all resources
}

// fixedPart is a schema that is the same everywhere, in both forms.
type fixedPart struct{ json, wire []byte }

type outline struct {
	text []byte
	root *outlined
	room []outlined // for more of them
}

// outlineDepth limits the nesting of schemas; deeper ones use the fallback.
const outlineDepth = 100

// newOutline scans the text of a schema. It returns nil if it does not support it, and trusts the text to be JSON.
func newOutline(text []byte) *outline {
	if len(text) > 1<<30 {
		return nil
	}
	o := &outline{text: text}
	root, end := o.schema(scan.Space(text, 0), 0)
	if end < 0 || scan.Space(text, end) != len(text) {
		return nil
	}
	o.root = root
	root.embed(true)
	if !root.has(keywordPreserve) { // a schema that keeps everything gets no further detail
		root.lossy(text)
	}
	return o
}

func (s *outlined) has(k keyword) bool { return s.places[k].end > 0 }

func (o *outline) in(p place) []byte { return o.text[p.at:p.end] }

func (o *outline) new() *outlined {
	if len(o.room) == 0 {
		o.room = make([]outlined, 32)
	}
	s := &o.room[0]
	o.room = o.room[1:]
	return s
}

// schema reads the one at an index; end is -1 for one without an outline.
func (o *outline) schema(at, depth int) (*outlined, int) {
	if depth > outlineDepth {
		return nil, -1
	}
	s := o.new()
	var seen uint64
	end := scan.Loose.Members(o.text, at, func(name scan.Name, at int) (int, bool) {
		if name.Has != 0 {
			return -1, false
		}
		k, known := keywords[string(o.text[name.At+1:name.End-1])]
		if !known || k < keywordCount && seen&(1<<k) != 0 {
			return -1, false
		}
		if k < keywordCount {
			seen |= 1 << k
		}
		end, kept := o.value(s, k, at, depth)
		if kept && k < keywordCount {
			s.places[k] = place{int32(at), int32(end)}
		}
		return end, true
	})
	return s, end
}

// value reads the value of a keyword; kept is false if it has no effect.
func (o *outline) value(s *outlined, k keyword, at, depth int) (end int, kept bool) {
	switch k {
	case keywordDescription, keywordFormat, keywordPattern, keywordTitle:
		end, _ = scan.String(o.text, at)
		return end, end > at+2
	case keywordType:
		end, has := scan.String(o.text, at)
		if has != 0 {
			return -1, false
		}
		return end, end > at+2
	case keywordListType, keywordMapType:
		end, _ = scan.String(o.text, at)
		return end, true
	case keywordMaximum, keywordMinimum, keywordMultipleOf:
		if end = scan.Number(o.text, at); end > 0 && !short(o.text[at:end]) {
			if _, err := strconv.ParseFloat(string(o.text[at:end]), 64); err != nil {
				return -1, false
			}
		}
		return end, true
	case keywordMaxItems, keywordMaxLength, keywordMaxProperties, keywordMinItems, keywordMinLength, keywordMinProperties:
		if end = scan.Number(o.text, at); end > 0 && !short(o.text[at:end]) {
			return -1, false
		}
		return end, true
	case keywordExclusiveMaximum, keywordExclusiveMinimum, keywordUniqueItems, keywordIntOrString:
		return o.flag(at)
	case keywordEmbedded:
		end, s.embedded = o.flag(at)
		return end, s.embedded
	case keywordNullable:
		end, s.nullable = o.flag(at)
		return end, false
	case keywordPreserve:
		return scan.Word(o.text, at, "true"), true // it must not be false
	case keywordRequired, keywordListMapKeys:
		return o.list(at, func(at int) int {
			end, has := scan.String(o.text, at)
			if has != 0 && k == keywordRequired && (has&scan.Escaped != 0 || !utf8.Valid(o.text[at:end])) {
				return -1
			}
			return end
		})
	case keywordEnum:
		return o.list(at, o.scalar)
	case keywordRules:
		return o.list(at, o.rule)
	}
	return o.parts(s, k, at, depth)
}

// parts reads keywords about parts of values.
func (o *outline) parts(s *outlined, k keyword, at, depth int) (end int, kept bool) {
	switch k {
	case keywordItems:
		s.items, end = o.schema(at, depth+1)
		return end, true
	case keywordAdditional:
		if at < len(o.text) && o.text[at] != '{' {
			end, _ = o.flag(at)
			return end, true
		}
		s.values, end = o.schema(at, depth+1)
		return end, true
	case keywordProperties:
		end = o.properties(s, at, depth)
		return end, len(s.properties) > 0
	case keywordAlternatives: // they are read to see whether they are as they may be
		return o.list(at, func(at int) int {
			_, end := o.schema(at, depth+1)
			return end
		})
	case keywordNot:
		_, end = o.schema(at, depth+1)
		return end, false
	}
	return scan.Skip(o.text, at), false
}

func (o *outline) properties(s *outlined, at, depth int) int {
	sorted := true
	end := scan.Loose.Members(o.text, at, func(name scan.Name, at int) (int, bool) {
		p := outlinedProperty{name: o.text[name.At+1 : name.End-1]}
		if name.Has&scan.Escaped != 0 || name.Has != 0 && !utf8.Valid(p.name) {
			return -1, false
		}
		var end int
		p.of, end = o.schema(at, depth+1)
		if n := len(s.properties); n > 0 && bytes.Compare(s.properties[n-1].name, p.name) >= 0 {
			sorted = false
		}
		s.properties = append(s.properties, p)
		return end, true
	})
	if sorted || end < 0 {
		return end
	}
	s.sortProperties()
	for i := range len(s.properties) - 1 {
		if bytes.Equal(s.properties[i].name, s.properties[i+1].name) {
			return -1
		}
	}
	return end
}

func (s *outlined) sortProperties() {
	sort.Slice(s.properties, func(i, j int) bool { return bytes.Compare(s.properties[i].name, s.properties[j].name) < 0 })
}

func (o *outline) flag(at int) (end int, is bool) {
	if end = scan.Word(o.text, at, "true"); end > 0 {
		return end, true
	}
	return scan.Word(o.text, at, "false"), false
}

// list reads a list; an empty one has no effect.
func (o *outline) list(at int, element func(at int) int) (end int, kept bool) {
	n := 0
	end = scan.Loose.Elements(o.text, at, func(at int) (int, bool) {
		n++
		return element(at), true
	})
	return end, n > 0
}

// scalar reads a value of an enumeration.
func (o *outline) scalar(at int) int {
	if at >= len(o.text) {
		return -1
	}
	switch o.text[at] {
	case '"':
		end, _ := scan.String(o.text, at)
		return end
	case 't':
		return scan.Word(o.text, at, "true")
	case 'f':
		return scan.Word(o.text, at, "false")
	case 'n':
		return scan.Word(o.text, at, "null")
	}
	if end := scan.Number(o.text, at); end > 0 && short(o.text[at:end]) {
		return end
	}
	return -1
}

// ruleFields are the fields of a rule, in the order of JSON.
var ruleFields = [...]string{"fieldPath", "message", "messageExpression", "optionalOldSelf", "reason", "rule"}

// rule reads a validation rule.
func (o *outline) rule(at int) int {
	_, end := o.ruleParts(at)
	return end
}

func (o *outline) ruleParts(at int) (parts [len(ruleFields)]place, end int) {
	end = scan.Loose.Members(o.text, at, func(name scan.Name, at int) (int, bool) {
		i := slices.Index(ruleFields[:], string(o.text[name.At+1:name.End-1]))
		if i < 0 || name.Has != 0 || parts[i].end > 0 {
			return -1, false
		}
		end := -1
		if ruleFields[i] == "optionalOldSelf" {
			end, _ = o.flag(at)
		} else {
			end, _ = scan.String(o.text, at)
		}
		parts[i] = place{int32(at), int32(end)}
		return end, true
	})
	return parts, end
}

// short reports whether a number is an integer with the same digits in every encoding.
func short(number []byte) bool {
	digits := bytes.TrimPrefix(number, []byte{'-'})
	if len(digits) > 15 || len(digits) == 0 || digits[0] == '0' && len(number) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
