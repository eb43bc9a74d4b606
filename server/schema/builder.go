package schema

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// documentBuilder builds documents for one request.
type documentBuilder struct {
	*Documents
	byKey     map[string][]*kinds.Resource // of the state that is described
	others    uint64
	documents map[string]*document // those whose tags are known
	defs      definitions
	resources []*kinds.Resource
	names     *names
	types     *wireTypes
	custom    map[string]bool // names of definitions of custom kinds
	own       map[string]bool // the same, with those of their lists
	tags      bool            // schemas carry tags in place of descriptions
	lacks     bool            // a definition was wanted that is not there
}

// builtIn are the definitions of built-in types.
type builtIn struct {
	packed   []byte          // all
	common   definitions     // for documents of custom kinds
	packages map[string]bool // of all of them
}

// builtIn gives the definitions of built-in types, and the first caller makes them.
func (d *Documents) builtIn() (*builtIn, error) {
	d.first.Lock()
	defer d.first.Unlock()
	if d.made != nil {
		return d.made, nil
	}
	packed, err := makeDefinitions(d.catalogue.Release())
	if err != nil {
		return nil, fmt.Errorf("making the OpenAPI definitions: %w", err)
	}
	defs, err := unpackDefinitions(packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking the OpenAPI definitions: %w", err)
	}
	of := &builtIn{packed: packed, packages: defs.packages(), common: definitions{}}
	for _, name := range commonDefinitions {
		defs.closure(name, of.common)
	}
	for name, text := range of.common {
		of.common[name] = bytes.Clone(text) // or it would keep all
	}
	d.made = of
	return of, nil
}

// newBuilder makes a builder that has all definitions.
func (d *Documents) newBuilder(of *state) (*documentBuilder, error) {
	types, err := d.builtIn()
	if err != nil {
		return nil, err
	}
	defs, err := unpackDefinitions(types.packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking the OpenAPI definitions: %w", err)
	}
	return d.builderWith(of, types, defs), nil
}

func (d *Documents) builderWith(of *state, types *builtIn, defs definitions) *documentBuilder {
	b := &documentBuilder{Documents: d, byKey: of.byKey, others: of.others, defs: defs, resources: of.resources, names: newNames(of.resources), types: newWireTypes(d.CBOR), custom: map[string]bool{}, own: map[string]bool{}}
	b.names.avoidCollisions(types.packages)
	return b
}

// commonDefinitions returns the definitions of built-in types that documents of custom kinds refer to, directly or
// indirectly.
var commonDefinitions = []string{
	metaName("DeleteOptions"), metaName("ListMeta"), metaName("ObjectMeta"), metaName("Patch"), metaName("Status"),
	"io.k8s.api.autoscaling.v1.Scale",
}

// build3 builds one document of version 3, nil for an unknown key. A document of custom kinds needs few definitions, which
// are in memory. known is the document whose tag it gets; nil if there is none yet.
func (d *Documents) build3(key string, of *state, known *document) (*document, error) {
	types, err := d.builtIn()
	if err != nil {
		return nil, err
	}
	tags := map[string]*document{}
	if known != nil {
		tags[key] = known
	}
	if d.customs(of.byKey[key]) {
		b := d.builderWith(of, types, maps.Clone(types.common))
		b.documents = tags
		if doc, err := b.openAPI3(key); !b.lacks {
			return doc, err
		}
	}
	b, err := d.newBuilder(of)
	if err != nil {
		return nil, err
	}
	b.documents = tags
	return b.openAPI3(key)
}

// addCustom adds the definitions of a custom kind and its list.
func (b *documentBuilder) addCustom(r *kinds.Resource) {
	var schema json.RawMessage
	switch {
	case b.tags:
		schema = fmt.Appendf(nil, `{"description":%q,"allOf":[{"$ref":%q}]}`, b.CustomDigest(r), refPrefix+metaName("ObjectMeta"))
	case b.CustomSchema != nil:
		schema = b.CustomSchema(r)
	}
	if schema == nil {
		schema = json.RawMessage(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)
	}
	b.defs[b.names.definition(r.APIVersion(), r.Kind)] = schema
	b.custom[b.names.definition(r.APIVersion(), r.Kind)] = true
	b.own[b.names.definition(r.APIVersion(), r.Kind)], b.own[b.names.definition(r.APIVersion(), r.ListKind)] = true, true
	list, err := json.Marshal(tree{
		"description": r.ListKind + " is a list of " + r.Kind,
		"type":        "object",
		"required":    []string{"items"},
		"properties": tree{
			"apiVersion": tree{"type": "string", "description": "The version of this form of the list."},
			"kind":       tree{"type": "string", "description": "The kind of the list."},
			"metadata":   tree{"allOf": []tree{{"$ref": refPrefix + metaName("ListMeta")}}, "description": "What is known of the list."},
			"items":      tree{"type": "array", "items": tree{"$ref": refPrefix + b.names.definition(r.APIVersion(), r.Kind)}, "description": "The objects."},
		},
	})
	if err == nil {
		b.defs[b.names.definition(r.APIVersion(), r.ListKind)] = list
	}
	for i := range r.Subresources {
		// What is read of an object as another kind of its version.
		if sub := &r.Subresources[i]; r.Reserved && b.CustomSchema != nil {
			part := *r
			part.Kind = sub.Kind
			b.defs[b.names.definition(r.APIVersion(), sub.Kind)] = b.CustomSchema(&part)
		}
	}
}

// paths returns the paths of one document of version 3, or nil for a key without paths.
func (b *documentBuilder) paths(key string) ([]pathItem, []*kinds.Resource) {
	of := b.byKey[key]
	if len(of) == 0 {
		if root, ok := b.roots()[key]; ok {
			return []pathItem{root}, nil
		}
		return nil, nil
	}
	for _, r := range of {
		if !r.HasGoType() {
			b.addCustom(r)
		}
	}
	var out []pathItem
	if !byDefinition(of[0]) {
		tag := lowerFirst(groupTag(of[0].Group)) + "_" + of[0].Version
		out = append(out, rootPath("/"+key+"/", metaName("APIResourceList"), "get available resources", "get"+groupTag(of[0].Group)+upperFirst(of[0].Version)+"APIResources", tag))
		out[0].operations[0].produces = b.types.plain
	}
	for _, r := range of {
		out = append(out, resourcePaths(b.names, b.types, r)...)
	}
	return out, of
}

// byDefinition reports whether a resource comes from a CustomResourceDefinition. A stock server describes the operations on
// such resources, but not the discovery of their groups and versions.
func byDefinition(r *kinds.Resource) bool { return r.Schema != nil && !r.Reserved }

// roots returns the documents about everything but resources.
func (b *documentBuilder) roots() map[string]pathItem {
	out := fixedRoots()
	for _, r := range b.resources {
		if _, made := out["apis/"+r.Group]; r.Group != "" && !made && !byDefinition(r) {
			out["apis/"+r.Group] = rootPath("/apis/"+r.Group+"/", metaName("APIGroup"), "get information of a group", "get"+groupTag(r.Group)+"APIGroup", lowerFirst(groupTag(r.Group)))
		}
	}
	return out
}

// fixedRoots returns the roots of each server.
func fixedRoots() map[string]pathItem {
	return map[string]pathItem{
		".well-known/openid-configuration": rootPath("/.well-known/openid-configuration/", "", "get the issuer's OpenID configuration", "getServiceAccountIssuerOpenIDConfiguration", "WellKnown"),
		"openid/v1/jwks":                   rootPath("/openid/v1/jwks/", "", "get the keys that sign service account tokens", "getServiceAccountIssuerOpenIDKeyset", "openid"),
		"version":                          rootPath("/version/", "io.k8s.apimachinery.pkg.version.Info", "get the version of this server", "getCodeVersion", "version"),
		"api":                              rootPath("/api/", metaName("APIVersions"), "get available API versions", "getCoreAPIVersions", "core"),
		"apis":                             rootPath("/apis/", metaName("APIGroupList"), "get available API versions", "getAPIVersions", "apis"),
	}
}

// keys lists the documents of version 3.
func (b *documentBuilder) keys() []string {
	keys := b.roots()
	for key := range b.byKey {
		keys[key] = pathItem{}
	}
	return slices.Sorted(maps.Keys(keys))
}

// wanted collects the definitions that paths and resources need.
func (b *documentBuilder) wanted(paths []pathItem, of []*kinds.Resource) map[string]json.RawMessage {
	wanted := map[string]json.RawMessage{}
	for _, name := range uses(paths) {
		b.lacks = b.lacks || name != "" && b.defs[name] == nil
		b.defs.closure(name, wanted)
	}
	for _, r := range of {
		b.defs.closure(b.names.definition(r.APIVersion(), r.Kind), wanted)
	}
	return wanted
}

// schemas collects the definitions that paths need, marked with their kinds.
func (b *documentBuilder) schemas(paths []pathItem, of []*kinds.Resource) (map[string]json.RawMessage, error) {
	wanted := b.wanted(paths, of)
	named := func(r *kinds.Resource) bool { return r.HasGoType() }
	if len(of) > 0 && of[0].HasGoType() && b.catalogue.Release().Has(release.MarksOfDocuments) {
		named = func(r *kinds.Resource) bool { return r.Group == "" }
	}
	marks := b.names.marks(slices.Concat(slices.DeleteFunc(slices.Clone(b.resources), func(r *kinds.Resource) bool { return !named(r) }), of))
	selectable := b.names.selectable(of)
	for name, raw := range wanted {
		var err error
		if wanted[name], err = marked(raw, name, marks, selectable); err != nil {
			return nil, err
		}
	}
	return wanted, nil
}

// marked returns a definition with the description of its kind.
func marked(raw json.RawMessage, name string, marks map[string][]gvkMark, selectable map[string][]selectableMark) (json.RawMessage, error) {
	out, err := mark(raw, marks[name])
	if fields, custom := selectable[name]; err == nil && custom {
		out, err = extend(out, selectableExtension, fields)
	}
	return out, err
}

func (b *documentBuilder) info() tree { return tree{"title": "Kubernetes", "version": b.version} }

// openAPI3 builds one document of version 3, or nil for an unknown key. The tag of a document of custom kinds is derived
// from its inputs, so that requests for the tag do not build the document.
func (b *documentBuilder) openAPI3(key string) (*document, error) {
	var tag *document
	if b.customs(b.byKey[key]) {
		var err error
		if tag, err = b.tagged(key); err != nil {
			return nil, err
		}
	}
	text, of, err := b.text3(key)
	if text == nil || err != nil {
		return nil, err
	}
	doc, err := b.pack(text, of)
	if tag != nil && err == nil {
		doc.etag, doc.modified = tag.etag, tag.modified
	}
	return doc, err
}

// tagged returns a document with a tag: an existing one, one of custom kinds without its text, or a new one.
func (b *documentBuilder) tagged(key string) (*document, error) {
	of := b.byKey[key]
	if doc := b.documents[key]; doc != nil {
		return doc, nil
	}
	if !b.customs(of) {
		return b.openAPI3(key)
	}
	b.tags = true
	text, of, err := b.text3(key)
	b.tags = false
	return &document{etag: fmt.Sprintf("%X", sha512.Sum512(text)), modified: b.Now(), resources: of}, err
}

// text3 returns the text of a document of version 3, nil for an unknown key, and what it describes.
func (b *documentBuilder) text3(key string) ([]byte, []*kinds.Resource, error) {
	paths, of := b.paths(key)
	if paths == nil {
		return nil, nil, nil
	}
	rendered := tree{}
	for i := range paths {
		rendered[paths[i].path] = paths[i].openAPI3()
	}
	schemas, err := b.schemas(paths, of)
	if err != nil {
		return nil, nil, err
	}
	info, components := b.info(), tree{"securitySchemes": tree{"BearerToken": bearer()}}
	if len(of) > 0 && byDefinition(of[0]) {
		info, components = tree{"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}, tree{}
	}
	if len(schemas) > 0 {
		components["schemas"] = schemas
	}
	text, err := json.Marshal(tree{"openapi": "3.0.0", "info": info, "paths": rendered, "components": components})
	return text, of, err
}

func bearer() tree {
	return tree{"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
}

// openAPI2 builds the document of version 2, with what its parts need and without them.
func (b *documentBuilder) openAPI2(parts []*swaggerPart) (tree, error) {
	var all []pathItem
	for _, root := range b.roots() {
		all = append(all, root)
	}
	for key, of := range b.byKey {
		if !b.customs(of) {
			paths, _ := b.paths(key)
			all = append(all, paths...)
		}
	}
	paths, shared := tree{}, sharedParameters{}
	for i := range all {
		paths[all[i].path] = all[i].swagger(shared)
	}
	var needed []pathItem // operations of no path
	for _, p := range parts {
		maps.Copy(shared, p.shared)
		for _, name := range p.needs {
			needed = append(needed, pathItem{operations: []operation{{answer: name}}})
		}
	}
	raw, err := b.schemas(append(needed, all...), b.resources)
	if err != nil {
		return nil, err
	}
	defs := tree{}
	for name, schema := range raw {
		var node any
		if err := json.Unmarshal(schema, &node); err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		defs[name] = b.swaggerOf(name, node)
	}
	return tree{
		"swagger": "2.0", "info": b.info(), "paths": paths, "definitions": defs, "parameters": shared,
		"securityDefinitions": tree{"BearerToken": bearer()}, "security": []tree{{"BearerToken": []string{}}},
	}, nil
}

// swaggerOf returns a definition as OpenAPI 2 has it.
func (b *documentBuilder) swaggerOf(name string, node any) any {
	if b.custom[name] {
		return swaggerOfCustom(node)
	}
	return swaggerOf(node)
}
