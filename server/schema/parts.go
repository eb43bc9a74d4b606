package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema/gnostic"
)

// The document of version 2 describes everything in one text. It is assembled from a base, which has
// everything but custom kinds, and a part for each version of a group of custom kinds. When a definition
// changes, only its part is made again.

// swaggerPart is the contribution of the kinds of one version.
type swaggerPart struct {
	resources   []*kinds.Resource
	definitions []string // names of its definitions
	needs       []string // built-in definitions that it refers to
	shared      sharedParameters

	paths   *piece // members of the object, behind a comma
	schemas *piece // likewise; nil until the first request
	wire    *piece // the same in protobuf; nil until the first request
}

// swaggerBase is the document without custom kinds, for one set of parts.
type swaggerBase struct {
	of             string // identifies its input; see madeOf
	json, protobuf []*piece
}

// Positions of parts among the pieces of a base.
const (
	behindDefinitions = 1
	behindPaths       = 2
)

// custom means that all resources of a version are custom ones whose schemas differ.
func (d *Documents) customs(of []*kinds.Resource) bool {
	return d.CustomDigest != nil && len(of) > 0 && !slices.ContainsFunc(of, func(r *kinds.Resource) bool { return d.CustomDigest(r) == "" })
}

// part returns that of a key ("apis/example.com/v1"), made again if its resources differ. It has the requested
// form: definitions as JSON, or everything as Protobuf.
func (b *documentBuilder) part(key string, protobuf bool) (*swaggerPart, error) {
	of := b.byKey[key]
	p := b.swaggerParts[key]
	if p == nil || !slices.Equal(p.resources, of) {
		p = &swaggerPart{resources: of, shared: sharedParameters{}}
	} else if protobuf && p.wire != nil || !protobuf && p.schemas != nil {
		return p, nil
	}
	defer b.forget(of)
	b.tags = true // the references of definitions are known without them
	items, _ := b.paths(key)
	b.tags = false
	if p.paths == nil {
		paths := tree{}
		for i := range items {
			paths[items[i].path] = items[i].swagger(p.shared)
		}
		for name := range b.wanted(items, of) {
			if b.own[name] {
				p.definitions = append(p.definitions, name)
			} else {
				p.needs = append(p.needs, name)
			}
		}
		slices.Sort(p.definitions)
		var err error
		if p.paths, err = members(paths); err != nil {
			return nil, err
		}
	}
	described, err := b.describe(p)
	if err != nil {
		return nil, err
	}
	if protobuf {
		p.wire, err = p.protobuf(described)
	} else {
		p.schemas, err = described.members()
	}
	if err != nil {
		return nil, err
	}
	b.swaggerParts[key] = p
	return p, nil
}

// forget takes the definitions of custom kinds from the builder again: no other part refers to
// them.
func (b *documentBuilder) forget(of []*kinds.Resource) {
	for _, r := range of {
		delete(b.defs, b.names.definition(r.APIVersion(), r.Kind))
		delete(b.defs, b.names.definition(r.APIVersion(), r.ListKind))
	}
}

// members returns the members of an object in a form that continues an object.
func members(of tree) (*piece, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	text[0] = ','
	return newPiece(text[:len(text)-1])
}

// described are the definitions of a part, sorted by name.
type described []describedOne

// describedOne has an outline, or else a schema.
type describedOne struct {
	name string
	*outline
	marks rootMarks
	text  json.RawMessage
}

// describe reads the definitions of a part: by their outlines where they have one.
func (b *documentBuilder) describe(p *swaggerPart) (described, error) {
	marks, fields := b.names.marks(p.resources), b.names.selectable(p.resources)
	outlines := map[string]*outline{}
	for _, r := range p.resources {
		name := b.names.definition(r.APIVersion(), r.Kind)
		var o *outline
		if b.CustomText != nil {
			if text := b.CustomText(r); text != nil {
				o = newOutline(text)
			}
		}
		if o == nil {
			b.addCustom(r)
			continue
		}
		outlines[name] = o
	}
	out := make(described, 0, len(p.definitions))
	for _, name := range p.definitions {
		one, err := describedOne{name: name, outline: outlines[name]}, error(nil)
		if one.outline != nil {
			one.marks, err = newRootMarks(marks[name], fields[name])
		} else if one.text, err = marked(b.defs[name], name, marks, fields); err == nil {
			var node any
			if err = json.Unmarshal(one.text, &node); err == nil {
				one.text, err = json.Marshal(b.swaggerOf(name, node))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// members returns the definitions as they continue an object.
func (all described) members() (*piece, error) {
	var text []byte
	for i := range all {
		text = append(appendName(append(text, ','), []byte(all[i].name)), ':')
		if o := all[i].outline; o != nil {
			text = o.appendJSON(text, all[i].marks)
		} else {
			text = append(text, all[i].text...)
		}
	}
	return newPiece(text)
}

// protobuf returns the part in that form.
func (p *swaggerPart) protobuf(all described) (*piece, error) {
	paths, err := p.paths.text()
	if err != nil {
		return nil, err
	}
	paths[0] = '{'
	wire, err := gnostic.EncodeSwagger(slices.Concat([]byte(`{"paths":`), paths, []byte(`}}`)))
	if err != nil {
		return nil, err
	}
	wire = nested(wire, 9, func(b []byte) []byte {
		for i := range all {
			one := &all[i]
			b = listed(b, one.name, func(b []byte) []byte {
				if one.outline != nil {
					return one.appendWire(b, one.marks)
				}
				schema, failed := gnostic.EncodeSwaggerSchema(one.text)
				err = errors.Join(err, failed)
				return append(b, schema...)
			})
		}
		return b
	})
	if err != nil {
		return nil, err
	}
	return newPiece(wire)
}

// base returns the document without custom kinds: it includes the definitions that the parts refer to, and
// definitions of other servers get no names that parts have.
func (b *documentBuilder) base(parts []*swaggerPart, others []*Swagger) (tree, error) {
	doc, err := b.openAPI2(parts)
	if err != nil {
		return nil, err
	}
	defs := doc["definitions"].(tree)
	for _, p := range parts {
		for _, name := range p.definitions {
			defs[name] = nil // taken
		}
	}
	if err := merge(doc, others); err != nil {
		return nil, err
	}
	for _, p := range parts {
		for _, name := range p.definitions {
			delete(defs, name)
		}
	}
	return doc, nil
}

// errUnwanted: no request waits for the document any more.
var errUnwanted = errors.New("the requests for an OpenAPI document have ended")

// build2 makes the document of version 2 as JSON or as protobuf, of one state of the catalogue. It
// gives way between parts, and gives up where the document is unwanted: the parts that were made stay.
func (d *Documents) build2(m *making, protobuf bool, unwanted func() bool) (*document, error) {
	b, err := d.newBuilder(&m.state)
	if err != nil {
		return nil, err
	}
	all, err := b.allPieces(m.parts, protobuf, unwanted)
	if err != nil {
		return nil, err
	}
	return &document{pieces: all, etag: all.etag(), modified: d.Now()}, nil
}

func (d *Documents) slot2(protobuf bool) **document {
	if protobuf {
		return &d.swaggerPB
	}
	return &d.swagger
}

// allPieces returns the pieces of the document of version 2.
func (b *documentBuilder) allPieces(others []*Swagger, protobuf bool, unwanted func() bool) (out pieces, err error) {
	var parts []*swaggerPart
	kept := map[string]*swaggerPart{}
	for _, key := range slices.Sorted(maps.Keys(b.byKey)) {
		if !b.customs(b.byKey[key]) {
			continue
		}
		p, err := b.part(key, protobuf)
		if err != nil {
			return nil, err
		}
		kept[key], parts = p, append(parts, p)
		if runtime.Gosched(); unwanted() {
			return nil, errUnwanted
		}
	}
	b.swaggerParts = kept // drops removed parts
	made := b.swaggerBases[protobuf]
	if of := b.madeOf(parts); made == nil || made.of != of {
		if made, err = b.newBase(parts, others, protobuf); err != nil {
			return nil, err
		}
		made.of = of
		b.swaggerBases[protobuf] = made
	}
	if protobuf {
		out = slices.Clone(made.protobuf)
		for _, part := range parts {
			out = append(out, part.wire)
		}
		return out, nil
	}
	for i, p := range made.json {
		out = append(out, p)
		for _, part := range parts {
			switch {
			case i == behindDefinitions-1:
				out = append(out, part.schemas)
			case i == behindPaths-1:
				out = append(out, part.paths)
			}
		}
	}
	return out, nil
}

// madeOf returns a key of a base: it depends on the other resources and servers, and on the references and names of parts.
func (b *documentBuilder) madeOf(parts []*swaggerPart) string {
	var of []byte
	for _, r := range b.resources {
		if b.CustomDigest == nil || b.CustomDigest(r) == "" {
			of = fmt.Appendf(of, "%p ", r)
		}
	}
	of = fmt.Appendf(of, "%d\n", b.others)
	for _, p := range parts {
		of = fmt.Appendf(of, "%s %q %q %q\n", documentKey(p.resources[0]), p.definitions, slices.Sorted(slices.Values(p.needs)), slices.Sorted(maps.Keys(p.shared)))
	}
	return string(of)
}

// newBase makes a base in one of the forms.
func (b *documentBuilder) newBase(parts []*swaggerPart, others []*Swagger, protobuf bool) (*swaggerBase, error) {
	doc, err := b.base(parts, others)
	if err != nil {
		return nil, err
	}
	if protobuf {
		text, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		wire, err := gnostic.EncodeSwagger(text)
		if err != nil {
			return nil, err
		}
		p, err := newPiece(wire)
		return &swaggerBase{protobuf: []*piece{p}}, err
	}
	defs, paths := doc["definitions"], doc["paths"]
	delete(doc, "definitions")
	delete(doc, "paths")
	out := &swaggerBase{}
	var texts [3][]byte
	for i, of := range []any{defs, paths, doc} {
		if texts[i], err = json.Marshal(of); err != nil {
			return nil, err
		}
	}
	for _, text := range [][]byte{
		slices.Concat([]byte(`{"definitions":`), texts[0][:len(texts[0])-1]),
		slices.Concat([]byte(`},"paths":`), texts[1][:len(texts[1])-1]),
		append([]byte(`},`), texts[2][1:]...),
	} {
		p, err := newPiece(text)
		if err != nil {
			return nil, err
		}
		out.json = append(out.json, p)
	}
	return out, nil
}
