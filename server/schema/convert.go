package schema

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/codecs"
)

// Converted is the document of version 3 that was made of another server's of version 2, as
// that server has none.
type Converted struct {
	key string
	now func() time.Time

	mu  sync.Mutex // held while the other form is made
	doc *document
}

// Convert returns the document of a group version: the paths below one, and the definitions that they refer to.
func (s *Swagger) Convert(groupVersion string, now func() time.Time) (*Converted, error) {
	all, err := s.parts()
	if err != nil {
		return nil, err
	}
	key, c := "apis/"+groupVersion, &converter{}
	part := swaggerParts{map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}}
	paths, schemas, parameters := tree{}, tree{}, tree{}
	for path, raw := range all.Paths {
		if strings.HasPrefix(path+"/", "/"+key+"/") {
			paths[path] = c.path(raw)
			all.need(raw, &part)
		}
	}
	for name, raw := range part.Definitions {
		schemas[name] = c.schema(c.read(raw))
	}
	for name, raw := range part.Parameters {
		parameters[name] = c.parameter(c.object(raw))
	}
	if c.err != nil {
		return nil, c.err
	}
	components := tree{"schemas": schemas}
	if len(parameters) > 0 {
		components["parameters"] = parameters
	}
	text, err := json.Marshal(tree{"openapi": "3.0.0", "info": tree{"title": groupVersion, "version": "unversioned"}, "paths": paths, "components": components})
	if err != nil {
		return nil, err
	}
	doc, err := packed(text, now())
	return &Converted{key: key, now: now, doc: doc}, err
}

// Hash returns the hash of the document.
func (c *Converted) Hash() string { return c.doc.etag }

// ServeHTTP answers with the document as JSON or protobuf.
func (c *Converted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	doc, typ := c.doc, codecs.Accepted(r, jsonType, openAPI3ProtobufOld, openAPI3Protobuf)
	switch typ {
	case "":
		w.WriteHeader(http.StatusNotAcceptable)
		return
	case openAPI3ProtobufOld, openAPI3Protobuf:
		c.mu.Lock()
		var err error
		if doc.protobuf == nil {
			doc.protobuf, err = doc.inProtobuf(c.now())
		}
		doc = doc.protobuf
		c.mu.Unlock()
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		typ = openAPI3Protobuf
	}
	serve3(w, r, c.key, typ, doc, c.now())
}

// converter turns parts of version 2 into those of version 3.
type converter struct{ err error }

func (c *converter) read(raw json.RawMessage) (node any) {
	if err := json.Unmarshal(raw, &node); err != nil && c.err == nil {
		c.err = err
	}
	return node
}

func (c *converter) object(raw json.RawMessage) tree { return asTree(c.read(raw)) }

// path converts the operations of a path.
func (c *converter) path(raw json.RawMessage) tree {
	out := tree{}
	for name, value := range c.object(raw) {
		switch {
		case name == "parameters":
			if list, _ := c.parameters(value); len(list) > 0 {
				out[name] = list
			}
		case strings.HasPrefix(name, "x-"):
			out[name] = value
		case name != "$ref":
			out[name] = c.operation(asTree(value))
		}
	}
	return out
}

// operation converts a method: version 3 moves the body out of the parameters, and the media types to body and
// answers.
func (c *converter) operation(op tree) tree {
	out := tree{}
	for name, value := range op {
		switch name {
		case "schemes", "consumes", "produces", "parameters", "responses":
		default:
			out[name] = value
		}
	}
	list, body := c.parameters(op["parameters"])
	if len(list) > 0 {
		out["parameters"] = list
	}
	if body != nil {
		request := tree{"content": content(op["consumes"], c.schema(body["schema"]))}
		for _, name := range []string{"description", "required"} {
			if value, ok := body[name]; ok {
				request[name] = value
			}
		}
		out["requestBody"] = request
	}
	responses := tree{}
	for code, value := range asTree(op["responses"]) {
		answer := tree{"description": asTree(value)["description"]}
		if schema, ok := asTree(value)["schema"]; ok {
			answer["content"] = content(op["produces"], c.schema(schema))
		}
		responses[code] = answer
	}
	out["responses"] = responses
	return out
}

// content returns a schema for each media type.
func content(types any, schema any) tree {
	out := tree{}
	for _, t := range asList(types) {
		if name, ok := t.(string); ok {
			out[name] = tree{"schema": schema}
		}
	}
	if len(out) == 0 {
		out["*/*"] = tree{"schema": schema}
	}
	return out
}

// parameters converts a list of them but for the body, which it gives back.
func (c *converter) parameters(list any) (out []any, body tree) {
	for _, p := range asList(list) {
		if p := asTree(p); p["in"] == "body" {
			body = p
		} else {
			out = append(out, c.parameter(p))
		}
	}
	return out, body
}

// parameter converts a parameter: its type becomes a schema.
func (c *converter) parameter(p tree) tree {
	if ref, ok := p["$ref"].(string); ok {
		return tree{"$ref": "#/components/parameters/" + strings.TrimPrefix(ref, parameterRef)}
	}
	out, schema := tree{}, tree{}
	for name, value := range p {
		switch name {
		case "name", "in", "description", "required":
			out[name] = value
		default:
			if strings.HasPrefix(name, "x-") {
				out[name] = value
			} else if name != "collectionFormat" {
				schema[name] = value
			}
		}
	}
	out["schema"] = c.schema(schema)
	return out
}

// schema points references to where schemas are in version 3.
func (c *converter) schema(node any) any {
	switch node := node.(type) {
	case []any:
		for i := range node {
			node[i] = c.schema(node[i])
		}
	case tree:
		if ref, ok := node["$ref"].(string); ok {
			return tree{"$ref": refPrefix + strings.TrimPrefix(ref, definitionRef)}
		}
		for name := range node {
			if name != "default" && name != "enum" && name != "example" {
				node[name] = c.schema(node[name])
			}
		}
	}
	return node
}

func asTree(v any) tree {
	t, _ := v.(tree)
	return t
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}
