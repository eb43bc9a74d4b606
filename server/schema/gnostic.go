package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// gnostic encodes an OpenAPI 2 document in the protobuf form that clients of
// discovery request: package openapi.v2 of gnostic, with its field numbers.
func gnostic(text []byte) ([]byte, error) { return gnosticOf(text, (*gnosticWriter).document) }

// gnosticPaths encodes only paths. Appended to a document they become part of it: readers of protobuf merge
// repeated messages.
func gnosticPaths(text []byte) ([]byte, error) {
	return gnosticOf(text, func(g *gnosticWriter, paths tree) []byte { return g.paths(paths) })
}

func gnosticOf(text []byte, write func(*gnosticWriter, tree) []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var doc tree
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	g := &gnosticWriter{}
	out := write(g, doc)
	return out, g.err
}

// gnosticWriter has one method a message. Methods return the encoded message.
type gnosticWriter struct{ err error }

func (g *gnosticWriter) document(doc tree) []byte {
	var b []byte
	b = text(b, 1, doc["swagger"])
	info := asTree(doc["info"])
	b = message(b, 2, text(text(nil, 1, info["title"]), 2, info["version"]))
	b = append(b, g.content(doc)...)
	var params []byte
	for _, name := range sorted(doc["parameters"]) {
		params = message(params, 1, named(name, g.parameter(asTree(asTree(doc["parameters"])[name]))))
	}
	b = message(b, 10, params)
	for _, requirement := range asList(doc["security"]) {
		var r []byte
		for _, name := range sorted(requirement) {
			r = message(r, 1, named(name, nil))
		}
		b = message(b, 12, r)
	}
	var security []byte
	for _, name := range sorted(doc["securityDefinitions"]) {
		s := asTree(asTree(doc["securityDefinitions"])[name])
		var key []byte
		for i, field := range []string{"type", "name", "in", "description"} {
			key = text(key, protowire.Number(i+1), s[field])
		}
		security = message(security, 1, named(name, message(nil, 2, key)))
	}
	return message(b, 13, security)
}

// content encodes paths and definitions.
func (g *gnosticWriter) content(doc tree) []byte {
	return message(g.paths(asTree(doc["paths"])), 9, g.schemas(doc["definitions"]))
}

func (g *gnosticWriter) paths(of tree) []byte {
	var paths []byte
	for _, name := range sorted(of) {
		paths = message(paths, 2, named(name, g.pathItem(asTree(of[name]))))
	}
	return message(nil, 8, paths)
}

func (g *gnosticWriter) pathItem(item tree) []byte {
	var b []byte
	for i, method := range []string{"get", "put", "post", "delete", "options", "head", "patch"} {
		if op, ok := item[method]; ok {
			b = message(b, protowire.Number(i+2), g.operation(asTree(op)))
		}
	}
	b = g.parameterItems(b, 9, item["parameters"])
	return g.extensions(b, 10, item)
}

func (g *gnosticWriter) operation(op tree) []byte {
	var b []byte
	b = texts(b, 1, op["tags"])
	b = text(b, 3, op["description"])
	b = text(b, 5, op["operationId"])
	b = texts(b, 6, op["produces"])
	b = texts(b, 7, op["consumes"])
	b = g.parameterItems(b, 8, op["parameters"])
	var responses []byte
	for _, code := range sorted(op["responses"]) {
		r := asTree(asTree(op["responses"])[code])
		response := text(nil, 1, r["description"])
		if schema, ok := r["schema"]; ok {
			response = message(response, 2, message(nil, 1, g.schema(asTree(schema))))
		}
		responses = message(responses, 1, named(code, message(nil, 1, response)))
	}
	b = message(b, 9, responses)
	b = texts(b, 10, op["schemes"])
	return g.extensions(b, 13, op)
}

func (g *gnosticWriter) parameterItems(b []byte, field protowire.Number, list any) []byte {
	for _, p := range asList(list) {
		if ref, ok := asTree(p)["$ref"]; ok {
			b = message(b, field, message(nil, 2, text(nil, 1, ref)))
			continue
		}
		b = message(b, field, message(nil, 1, g.parameter(asTree(p))))
	}
	return b
}

func (g *gnosticWriter) parameter(p tree) []byte {
	if p["in"] == "body" {
		body := text(text(nil, 2, p["name"]), 3, p["in"])
		body = boolean(body, 4, p["required"])
		return message(nil, 1, message(body, 5, g.schema(asTree(p["schema"]))))
	}
	var sub []byte
	sub = boolean(sub, 1, p["required"])
	sub = text(sub, 2, p["in"])
	sub = text(sub, 3, p["description"])
	sub = text(sub, 4, p["name"])
	if p["in"] == "path" {
		sub = boolean(text(sub, 5, p["type"]), 19, p["uniqueItems"])
		return message(nil, 2, message(nil, 4, sub))
	}
	sub = boolean(text(sub, 6, p["type"]), 20, p["uniqueItems"])
	return message(nil, 2, message(nil, 3, sub))
}

// Fields of a schema that are numbers, by their JSON name.
var (
	schemaDoubles = map[string]protowire.Number{"multipleOf": 6, "maximum": 7, "minimum": 9}
	schemaInts    = map[string]protowire.Number{"maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15, "maxProperties": 17, "minProperties": 18}
	schemaBools   = map[string]protowire.Number{"exclusiveMaximum": 8, "exclusiveMinimum": 10, "uniqueItems": 16, "readOnly": 27}
)

func (g *gnosticWriter) schema(s tree) []byte {
	var b []byte
	b = text(b, 1, s["$ref"])
	b = text(b, 2, s["format"])
	b = text(b, 3, s["title"])
	b = text(b, 4, s["description"])
	b = text(b, 13, s["pattern"])
	for _, name := range sorted(s) {
		value, _ := s[name].(json.Number)
		if field, ok := schemaDoubles[name]; ok && value != "" {
			f, err := value.Float64()
			g.note(err)
			b = protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(f))
		} else if field, ok := schemaInts[name]; ok && value != "" {
			n, err := value.Int64()
			g.note(err)
			b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
		} else if field, ok := schemaBools[name]; ok {
			b = boolean(b, field, s[name])
		}
	}
	b = texts(b, 19, s["required"])
	for _, v := range asList(s["enum"]) {
		b = message(b, 20, g.any(v))
	}
	switch more := s["additionalProperties"].(type) {
	case bool:
		b = message(b, 21, protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), protowire.EncodeBool(more)))
	case tree:
		b = message(b, 21, message(nil, 1, g.schema(more)))
	}
	if typ, ok := s["type"]; ok {
		b = message(b, 22, text(nil, 1, typ))
	}
	if items, ok := s["items"].(tree); ok {
		b = message(b, 23, message(nil, 1, g.schema(items)))
	}
	for _, part := range asList(s["allOf"]) {
		b = message(b, 24, g.schema(asTree(part)))
	}
	if properties, ok := s["properties"]; ok {
		b = message(b, 25, g.schemas(properties))
	}
	return g.extensions(b, 31, s)
}

// schemas encodes a map of schemas: definitions or properties.
func (g *gnosticWriter) schemas(m any) []byte {
	var b []byte
	for _, name := range sorted(m) {
		b = message(b, 1, named(name, g.schema(asTree(asTree(m)[name]))))
	}
	return b
}

func (g *gnosticWriter) extensions(b []byte, field protowire.Number, node tree) []byte {
	for _, name := range sorted(node) {
		if strings.HasPrefix(name, "x-") {
			b = message(b, field, named(name, g.any(node[name])))
		}
	}
	return b
}

// any encodes a value as YAML text, of which JSON is a part.
func (g *gnosticWriter) any(v any) []byte {
	yaml, err := json.Marshal(v)
	g.note(err)
	return text(nil, 2, string(yaml)+"\n")
}

func (g *gnosticWriter) note(err error) {
	if err != nil && g.err == nil {
		g.err = fmt.Errorf("encoding the OpenAPI 2 document: %w", err)
	}
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func text(b []byte, field protowire.Number, v any) []byte {
	s, _ := v.(string)
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func texts(b []byte, field protowire.Number, list any) []byte {
	for _, v := range asList(list) {
		b = text(b, field, v)
	}
	return b
}

func boolean(b []byte, field protowire.Number, v any) []byte {
	if v != true {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), 1)
}

func named(name string, value []byte) []byte {
	return message(text(nil, 1, name), 2, value)
}

func asTree(v any) tree {
	t, _ := v.(tree)
	return t
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

func sorted(v any) []string { return slices.Sorted(maps.Keys(asTree(v))) }
