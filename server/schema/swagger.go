package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/gzip"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/schema/gnostic"
)

// Swagger is a part of the OpenAPI 2 document of another server, compressed.
type Swagger struct {
	packed []byte
	Size   int // of the compressed form
}

// SwaggerLimits bound the cost of a document of another server.
type SwaggerLimits struct {
	Values int // objects and lists
	Paths  int
}

// swaggerParts are the parts of a document that are merged with others.
type swaggerParts struct {
	Paths       map[string]json.RawMessage `json:"paths"`
	Definitions map[string]json.RawMessage `json:"definitions"`
	Parameters  map[string]json.RawMessage `json:"parameters"`
}

// Prefixes of references to definitions and parameters.
const (
	definitionRef = "#/definitions/"
	parameterRef  = "#/parameters/"
)

// ReadSwagger reads the JSON document of another server: the wanted paths, and the definitions and parameters that they
// need. The result can be encoded in each form.
func ReadSwagger(body []byte, limits SwaggerLimits, wanted func(path string) bool) (*Swagger, error) {
	if scan.Containers(body, limits.Values) > limits.Values {
		return nil, fmt.Errorf("there are more than %d objects and lists", limits.Values)
	}
	var all, part swaggerParts
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, err
	}
	part = swaggerParts{map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}}
	for path, item := range all.Paths {
		if wanted(path) {
			part.Paths[path] = item
			all.need(item, &part)
		}
	}
	if len(part.Paths) > limits.Paths {
		return nil, fmt.Errorf("there are more than %d paths", limits.Paths)
	}
	text, err := json.Marshal(part)
	if err != nil {
		return nil, err
	}
	if _, err := gnostic.EncodeSwagger(text); err != nil {
		return nil, err
	}
	packed, err := packBytes(text)
	return &Swagger{packed: packed, Size: len(text)}, err
}

// need moves the definitions that a text refers to, directly or through others, to a part.
func (all *swaggerParts) need(raw json.RawMessage, part *swaggerParts) {
	for waiting := []json.RawMessage{raw}; len(waiting) > 0; {
		raw, waiting = waiting[0], waiting[1:]
		for name := range references(raw, definitionRef) {
			if found, ok := all.Definitions[name]; ok && part.Definitions[name] == nil {
				part.Definitions[name] = found
				waiting = append(waiting, found)
			}
		}
		for name := range references(raw, parameterRef) {
			if found, ok := all.Parameters[name]; ok && part.Parameters[name] == nil {
				part.Parameters[name] = found
				waiting = append(waiting, found)
			}
		}
	}
}

// references returns the names that a text refers to, with where they begin and end.
func references(raw []byte, prefix string) func(yield func(name string, at int) bool) {
	quoted := []byte(`"` + prefix)
	return func(yield func(string, int) bool) {
		for at := 0; ; {
			i := bytes.Index(raw[at:], quoted)
			if i < 0 {
				return
			}
			at += i + len(quoted)
			end := bytes.IndexByte(raw[at:], '"')
			if end < 0 || !yield(string(raw[at:at+end]), at) {
				return
			}
			at += end
		}
	}
}

func (s *Swagger) parts() (*swaggerParts, error) {
	text, err := unzip(s.packed)
	if err != nil {
		return nil, err
	}
	p := &swaggerParts{}
	return p, json.Unmarshal(text, p)
}

func packBytes(text []byte) ([]byte, error) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	_, err := zw.Write(text)
	err = errors.Join(err, zw.Close())
	return bytes.Clone(buf.Bytes()), err
}

// merge adds the parts of other servers to a document. Paths that are there already stay. A definition or
// parameter whose name is taken by a different one gets another name, and references to it follow.
func merge(doc tree, others []*Swagger) error {
	if len(others) == 0 {
		return nil
	}
	paths, defs, params := doc["paths"].(tree), doc["definitions"].(tree), tree{}
	for name, p := range doc["parameters"].(sharedParameters) {
		params[name] = p
	}
	doc["parameters"] = params
	for _, other := range others {
		p, err := other.parts()
		if err != nil {
			return fmt.Errorf("merging the document of another server: %w", err)
		}
		names := map[string]map[string]string{definitionRef: freeNames(p.Definitions, defs), parameterRef: freeNames(p.Parameters, params)}
		for old, name := range names[definitionRef] {
			add(defs, name, p.Definitions[old], names)
		}
		for old, name := range names[parameterRef] {
			add(params, name, p.Parameters[old], names)
		}
		for path, raw := range p.Paths {
			add(paths, path, raw, names)
		}
	}
	return nil
}

// add puts a part where nothing is yet.
func add(to tree, name string, raw json.RawMessage, names map[string]map[string]string) {
	if _, taken := to[name]; !taken {
		to[name] = pointed(raw, names)
	}
}

// freeNames maps each part to an unused name: its own, or the first of name_v2, name_v3 and so on that is free or has
// the same content.
func freeNames(parts map[string]json.RawMessage, there tree) map[string]string {
	names := make(map[string]string, len(parts))
	for old, raw := range parts {
		name := old
		for n := 2; ; n++ {
			other, taken := there[name]
			if _, own := parts[name]; !taken && (name == old || !own) || taken && same(raw, other) {
				break
			}
			name = fmt.Sprintf("%s_v%d", old, n)
		}
		names[old] = name
	}
	return names
}

// same reports whether two definitions differ in nothing but their descriptions, and the kinds
// that they are marked with.
func same(a json.RawMessage, b any) bool {
	other, err := json.Marshal(b)
	if err != nil {
		return false
	}
	one, two := core(a), core(other)
	return one != nil && bytes.Equal(one, two)
}

// core returns a definition without descriptions.
func core(raw []byte) []byte {
	var node any
	if json.Unmarshal(raw, &node) != nil {
		return nil
	}
	text, err := json.Marshal(withoutDescriptions(node))
	if err != nil {
		return nil
	}
	return text
}

func withoutDescriptions(node any) any {
	switch node := node.(type) {
	case []any:
		for i := range node {
			node[i] = withoutDescriptions(node[i])
		}
	case map[string]any:
		if _, ok := node["description"].(string); ok { // else it is a property of this name
			delete(node, "description")
		}
		delete(node, gvkExtension)
		for name := range node {
			node[name] = withoutDescriptions(node[name])
		}
	}
	return node
}

// pointed returns a text whose references use the new names.
func pointed(raw json.RawMessage, names map[string]map[string]string) json.RawMessage {
	for _, prefix := range []string{definitionRef, parameterRef} {
		var out []byte
		last := 0
		for old, at := range references(raw, prefix) {
			if name, ok := names[prefix][old]; ok && name != old {
				out = append(append(out, raw[last:at]...), name...)
				last = at + len(old)
			}
		}
		if last > 0 {
			raw = append(out, raw[last:]...)
		}
	}
	return raw
}
