package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// schemaOf is an OpenAPI 3 schema; encoding/json sorts its keys.
type schemaOf map[string]any

// special are types that encode themselves.
var special = map[string]schemaOf{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":      {"type": "string", "format": "date-time"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": {"type": "string", "format": "date-time"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":  {"type": "string"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":  {"type": "object"},
	"k8s.io/apimachinery/pkg/runtime.RawExtension":   {"type": "object"},
	"k8s.io/apimachinery/pkg/api/resource.Quantity":  {"oneOf": []schemaOf{{"type": "string"}, {"type": "number"}}},
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": {
		"oneOf": []schemaOf{{"type": "integer"}, {"type": "string"}}, "format": "int-or-string"},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         {},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       {},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        {},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": {},
}

var builtin = map[string]schemaOf{
	"string":  {"type": "string"},
	"bool":    {"type": "boolean"},
	"int":     {"type": "integer", "format": "int32"},
	"int32":   {"type": "integer", "format": "int32"},
	"uint32":  {"type": "integer", "format": "int64"},
	"int64":   {"type": "integer", "format": "int64"},
	"uint16":  {"type": "integer", "format": "int32"},
	"uint8":   {"type": "integer", "format": "byte"},
	"byte":    {"type": "integer", "format": "byte"},
	"float64": {"type": "number", "format": "double"},
}

var zeros = map[string]any{"string": "", "boolean": false, "integer": 0, "number": 0}

// definitions writes one line a definition, sorted: the name of the Go type, a tab, a JSON schema, and the
// schema of the newer sources, if it differs, after another tab. A description is an empty string: it marks a
// description that the server has to find.
func (s *source) definitions(newer *source) ([]byte, error) {
	var out bytes.Buffer
	for _, name := range names(s, newer) {
		old, err := s.definition(name)
		if err != nil {
			return nil, err
		}
		latest, err := newer.definition(name)
		if err != nil {
			return nil, err
		}
		switch {
		case latest != "" && latest != old:
			fmt.Fprintf(&out, "%s\t%s\t%s\n", name, old, latest)
		case old != "":
			fmt.Fprintf(&out, "%s\t%s\n", name, old)
		}
	}
	return out.Bytes(), nil
}

// names returns the names of the types in either of two sources, sorted.
func names(a, b *source) []string {
	all := slices.Concat(a.names, b.names)
	slices.Sort(all)
	return slices.Compact(all)
}

// definition returns the schema of a type; "": there is none.
func (s *source) definition(name string) (string, error) {
	t := s.types[name]
	if t == nil {
		return "", nil
	}
	def, ok := special[name]
	if st, isStruct := s.structOf(t); !ok && isStruct && !t.alias {
		def = s.object(st)
	} else if !ok {
		return "", nil
	}
	def = with(def, nil)
	if st, ok := s.structOf(t); ok && t.markers.has("union") {
		def["x-kubernetes-unions"] = []schemaOf{s.union(st)}
	}
	if t.described {
		def["description"] = ""
	}
	if atomicMarker(t.markers) {
		def["x-kubernetes-map-type"] = "atomic"
	}
	line, err := json.Marshal(def)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(line), nil
}

// definitionName turns "k8s.io/api/core/v1.Pod" into "io.k8s.api.core.v1.Pod".
func definitionName(full string) string {
	domain, rest, _ := strings.Cut(full, "/")
	parts := strings.Split(domain, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".")
}

func (s *source) object(st *structExpr) schemaOf {
	properties := schemaOf{}
	var required []string
	for _, f := range s.fields(st) {
		properties[f.name] = s.property(f)
		optional := f.omitEmpty || f.markers.has("optional")
		if !optional || f.markers.has("required") {
			required = append(required, f.name)
		}
	}
	def := schemaOf{"type": "object"}
	if len(properties) > 0 {
		def["properties"] = properties
	}
	if len(required) > 0 {
		def["required"] = required
	}
	return def
}

// union describes the field of a struct that names the one that counts, and how.
func (s *source) union(st *structExpr) schemaOf {
	members, out := schemaOf{}, schemaOf{}
	for _, f := range s.fields(st) {
		if f.markers.has("unionDiscriminator") {
			out["discriminator"] = f.name
		} else {
			members[f.name] = f.goName
		}
	}
	out["fields-to-discriminateBy"] = members
	return out
}

func (s *source) property(f fieldDecl) schemaOf {
	schema := with(s.schema(f.expr, f.scope), nil)
	if f.described || schema["enum"] != nil {
		schema["description"] = ""
	}
	if v := s.fieldDefault(f); v != "" {
		schema["default"] = json.RawMessage(v)
	} else if zero, ok := s.zero(f.expr, f.scope, schema, f.omitEmpty); ok {
		schema["default"] = zero
	}
	for key, value := range f.extensions() {
		schema[key] = value
	}
	if ref, ok := schema["$ref"]; ok && len(schema) > 1 {
		delete(schema, "$ref")
		schema["allOf"] = []schemaOf{{"$ref": ref}}
	}
	return schema
}

// zero returns the default of a value that is always encoded.
func (s *source) zero(e ast.Expr, sc *scope, schema schemaOf, omitEmpty bool) (any, bool) {
	if _, pointer := e.(*ast.StarExpr); pointer {
		return nil, false
	}
	if _, ref := schema["$ref"]; ref {
		t, ok := s.resolve(e, sc)
		if !ok {
			return nil, false
		}
		if _, ok := special[t.pkg.path+"."+t.name]; ok {
			return nil, false
		}
		return schemaOf{}, true
	}
	typ, _ := schema["type"].(string)
	zero, ok := zeros[typ]
	return zero, ok && !omitEmpty && schema["format"] != "byte"
}

func (f fieldDecl) extensions() schemaOf {
	out := schemaOf{}
	if v := f.markers.get("listType"); v != "" {
		out["x-kubernetes-list-type"] = v
	}
	if keys := f.markers["listMapKey"]; len(keys) > 0 {
		out["x-kubernetes-list-map-keys"] = keys
	}
	for _, marker := range []string{"mapType", "structType"} {
		if v := f.markers.get(marker); v != "" {
			out["x-kubernetes-map-type"] = v
		}
	}
	if v := f.tag.Get("patchStrategy"); v != "" {
		out["x-kubernetes-patch-strategy"] = v
	}
	if v := f.tag.Get("patchMergeKey"); v != "" {
		out["x-kubernetes-patch-merge-key"] = v
	}
	return out
}

// schema returns the schema of a type expression where it is used.
func (s *source) schema(e ast.Expr, sc *scope) schemaOf {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.schema(e.X, sc)
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && (id.Name == "byte" || id.Name == "uint8") {
			return schemaOf{"type": "string", "format": "byte"}
		}
		return schemaOf{"type": "array", "items": s.element(e.Elt, sc)}
	case *ast.MapType:
		return schemaOf{"type": "object", "additionalProperties": s.element(e.Value, sc)}
	case *ast.InterfaceType:
		return schemaOf{"type": "object"}
	case *ast.Ident:
		if b, ok := builtin[e.Name]; ok {
			return b
		}
	}
	full := qualified(e, sc)
	t, ok := s.types[full]
	if !ok {
		return schemaOf{"type": "object"}
	}
	_, isSpecial := special[full]
	switch inner := t.expr.(type) {
	case *structExpr:
		return schemaOf{"$ref": "#/components/schemas/" + definitionName(full)}
	case *scopedExpr:
		if _, isStruct := s.structOf(t); isSpecial || isStruct && !t.alias {
			return schemaOf{"$ref": "#/components/schemas/" + definitionName(full)}
		}
		schema := s.schema(inner.Expr, inner.scope)
		if len(t.enum) > 0 {
			schema = with(schema, schemaOf{"enum": t.enum})
		}
		return schema
	}
	return schemaOf{"type": "object"}
}

// element returns the schema of the items of a list or the values of a map.
func (s *source) element(e ast.Expr, sc *scope) schemaOf {
	schema := with(s.schema(e, sc), nil)
	zero, ok := s.zero(e, sc, schema, false)
	if !ok {
		return schema
	}
	schema["default"] = zero
	if ref, ok := schema["$ref"]; ok {
		delete(schema, "$ref")
		schema["allOf"] = []schemaOf{{"$ref": ref}}
	}
	return schema
}

func with(base, more schemaOf) schemaOf {
	out := schemaOf{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}
