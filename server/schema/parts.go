package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/rowlock/rowlock/server/kinds"
)

// The document of version 2 describes everything in one text. It is put together of a base, what
// there is but custom kinds, and a part for each version of a group of custom kinds. When a
// definition changes, its part is made anew, and nothing else.

// swaggerPart is what the kinds of one version add.
type swaggerPart struct {
	resources   []*kinds.Resource
	definitions []string // the names of its own
	needs       []string // those of built-in ones that it refers to
	shared      sharedParameters

	paths, schemas *piece // members of the two objects, each behind a comma
	wire           *piece // the same in protobuf; nil until asked for
}

// swaggerBase is what there is but custom kinds, for one set of parts.
type swaggerBase struct {
	of             string // what it was made of
	json, protobuf []*piece
}

// Where parts stand among the pieces of a base.
const (
	behindDefinitions = 1
	behindPaths       = 2
)

// custom says that all resources of a version are custom ones whose schemas are told apart.
func (d *Documents) customs(of []*kinds.Resource) bool {
	return d.CustomDigest != nil && len(of) > 0 && !slices.ContainsFunc(of, func(r *kinds.Resource) bool { return d.CustomDigest(r) == "" })
}

// part is that of a key ("apis/example.com/v1"), made anew if its resources are other ones.
func (b *documentBuilder) part(key string) (*swaggerPart, error) {
	of := b.byKey[key]
	if p := b.swaggerParts[key]; p != nil && slices.Equal(p.resources, of) {
		return p, nil
	}
	p := &swaggerPart{resources: of, shared: sharedParameters{}}
	items, _ := b.paths(key)
	paths, schemas := tree{}, tree{}
	for i := range items {
		paths[items[i].path] = items[i].swagger(p.shared)
	}
	raw, err := b.schemas(items, of)
	if err != nil {
		return nil, err
	}
	for name, text := range raw {
		if !b.own[name] {
			p.needs = append(p.needs, name)
			continue
		}
		var node any
		if err := json.Unmarshal(text, &node); err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		schemas[name] = b.swaggerOf(name, node)
		p.definitions = append(p.definitions, name)
	}
	if p.paths, err = members(paths); err == nil {
		p.schemas, err = members(schemas)
	}
	if err != nil {
		return nil, err
	}
	b.swaggerParts[key] = p
	return p, nil
}

// members are those of an object, as they continue one.
func members(of tree) (*piece, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	text[0] = ','
	return newPiece(text[:len(text)-1])
}

// protobuf is the part in that form, made once.
func (p *swaggerPart) protobuf() (*piece, error) {
	if p.wire != nil {
		return p.wire, nil
	}
	paths, err := p.paths.text()
	if err != nil {
		return nil, err
	}
	schemas, err := p.schemas.text()
	if err != nil {
		return nil, err
	}
	paths[0], schemas[0] = '{', '{'
	wire, err := gnosticPart(fmt.Appendf(nil, `{"paths":%s},"definitions":%s}}`, paths, schemas))
	if err != nil {
		return nil, err
	}
	p.wire, err = newPiece(wire)
	return p.wire, err
}

// base is the document but for custom kinds: what the parts refer to is in it, and names that
// they have are not given to definitions of other servers.
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

// version2 returns the document of version 2 as JSON or as protobuf.
func (d *Documents) version2(protobuf bool) (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resources, others := d.refresh(), d.parts()
	slot := &d.swagger
	if protobuf {
		slot = &d.swaggerPB
	}
	if *slot != nil {
		return *slot, nil
	}
	b, err := d.newBuilder(resources)
	if err != nil {
		return nil, err
	}
	all, err := b.allPieces(others, protobuf)
	if err != nil {
		return nil, err
	}
	*slot = &document{pieces: all, etag: all.etag(), modified: d.Now()}
	return *slot, nil
}

// allPieces are those of the document of version 2.
func (b *documentBuilder) allPieces(others []*Swagger, protobuf bool) (out pieces, err error) {
	var parts []*swaggerPart
	kept := map[string]*swaggerPart{}
	for _, key := range slices.Sorted(maps.Keys(b.byKey)) {
		if !b.customs(b.byKey[key]) {
			continue
		}
		p, err := b.part(key)
		if err != nil {
			return nil, err
		}
		kept[key], parts = p, append(parts, p)
	}
	b.swaggerParts = kept // what is gone goes
	made := b.swaggerBases[protobuf]
	if of := b.madeOf(parts); made == nil || made.of != of {
		if made, err = b.newBase(parts, others, protobuf); err != nil {
			return nil, err
		}
		made.of = of
		b.swaggerBases[protobuf] = made
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
	if !protobuf {
		return out, nil
	}
	out = slices.Clone(made.protobuf)
	for _, part := range parts {
		wire, err := part.protobuf()
		if err != nil {
			return nil, err
		}
		out = append(out, wire)
	}
	return out, nil
}

// madeOf tells bases apart: by the other resources and servers, and by what they say of parts.
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
		wire, err := gnostic(text)
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
