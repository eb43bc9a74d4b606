package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/rowlock/rowlock/server/kinds"
)

// documentBuilder holds what building documents needs, for the time of one request.
type documentBuilder struct {
	*Documents
	defs      definitions
	resources []*kinds.Resource
	names     *names
	types     *wireTypes
	custom    map[string]bool // names of definitions of custom kinds
}

// newBuilder makes a builder, and the definitions for the first one. The caller holds mu.
func (d *Documents) newBuilder(resources []*kinds.Resource) (*documentBuilder, error) {
	if d.packed == nil {
		packed, err := makeDefinitions()
		if err != nil {
			return nil, fmt.Errorf("making the OpenAPI definitions: %w", err)
		}
		d.packed = packed
	}
	defs, err := unpackDefinitions(d.packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking the OpenAPI definitions: %w", err)
	}
	b := &documentBuilder{Documents: d, defs: defs, resources: resources, names: newNames(resources), types: newWireTypes(d.CBOR), custom: map[string]bool{}}
	b.names.avoidCollisions(defs)
	for _, r := range resources {
		if !r.HasGoType() {
			b.addCustom(r)
		}
	}
	return b, nil
}

// addCustom adds the definitions of a custom kind and its list.
func (b *documentBuilder) addCustom(r *kinds.Resource) {
	var schema json.RawMessage
	if b.CustomSchema != nil {
		schema = b.CustomSchema(r)
	}
	if schema == nil {
		schema = json.RawMessage(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)
	}
	b.defs[b.names.definition(r.APIVersion(), r.Kind)] = schema
	b.custom[b.names.definition(r.APIVersion(), r.Kind)] = true
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

// paths are those of one document of version 3, or nil for a key that has none.
func (b *documentBuilder) paths(key string) ([]pathItem, []*kinds.Resource) {
	if root, ok := b.roots()[key]; ok {
		return []pathItem{root}, nil
	}
	of := resourcesOf(b.resources, key)
	if len(of) == 0 {
		return nil, nil
	}
	tag := lowerFirst(groupTag(of[0].Group)) + "_" + of[0].Version
	out := []pathItem{rootPath("/"+key+"/", metaName("APIResourceList"), "get available resources", "get"+groupTag(of[0].Group)+upperFirst(of[0].Version)+"APIResources", tag)}
	out[0].operations[0].produces = b.types.plain
	for _, r := range of {
		out = append(out, resourcePaths(b.names, b.types, r)...)
	}
	return out, of
}

// roots are the documents about everything but resources.
func (b *documentBuilder) roots() map[string]pathItem {
	out := map[string]pathItem{
		".well-known/openid-configuration": rootPath("/.well-known/openid-configuration/", "", "get the issuer's OpenID configuration", "getServiceAccountIssuerOpenIDConfiguration", "WellKnown"),
		"openid/v1/jwks":                   rootPath("/openid/v1/jwks/", "", "get the keys that sign service account tokens", "getServiceAccountIssuerOpenIDKeyset", "openid"),
		"version":                          rootPath("/version/", "io.k8s.apimachinery.pkg.version.Info", "get the version of this server", "getCodeVersion", "version"),
		"api":                              rootPath("/api/", metaName("APIVersions"), "get available API versions", "getCoreAPIVersions", "core"),
		"apis":                             rootPath("/apis/", metaName("APIGroupList"), "get available API versions", "getAPIVersions", "apis"),
	}
	for _, r := range b.resources {
		if r.Group != "" {
			out["apis/"+r.Group] = rootPath("/apis/"+r.Group+"/", metaName("APIGroup"), "get information of a group", "get"+groupTag(r.Group)+"APIGroup", lowerFirst(groupTag(r.Group)))
		}
	}
	return out
}

// keys lists the documents of version 3.
func (b *documentBuilder) keys() []string {
	keys := b.roots()
	for _, r := range b.resources {
		keys[documentKey(r)] = pathItem{}
	}
	return slices.Sorted(maps.Keys(keys))
}

// schemas collects the definitions that paths need, marked with their kinds.
func (b *documentBuilder) schemas(paths []pathItem, of []*kinds.Resource) (map[string]json.RawMessage, error) {
	wanted := map[string]json.RawMessage{}
	for _, name := range uses(paths) {
		b.defs.closure(name, wanted)
	}
	for _, r := range of {
		b.defs.closure(b.names.definition(r.APIVersion(), r.Kind), wanted)
	}
	marks := b.names.marks(slices.Concat(slices.DeleteFunc(slices.Clone(b.resources), func(r *kinds.Resource) bool { return !r.HasGoType() }), of))
	selectable := b.names.selectable(of)
	for name, raw := range wanted {
		marked, err := mark(raw, marks[name])
		if fields, custom := selectable[name]; err == nil && custom {
			marked, err = extend(marked, selectableExtension, fields)
		}
		if err != nil {
			return nil, err
		}
		wanted[name] = marked
	}
	return wanted, nil
}

func (b *documentBuilder) info() tree { return tree{"title": "Kubernetes", "version": b.version} }

// openAPI3 builds one document of version 3, or nil for an unknown key.
func (b *documentBuilder) openAPI3(key string) (*document, error) {
	paths, of := b.paths(key)
	if paths == nil {
		return nil, nil
	}
	rendered := tree{}
	for i := range paths {
		rendered[paths[i].path] = paths[i].openAPI3()
	}
	schemas, err := b.schemas(paths, of)
	if err != nil {
		return nil, err
	}
	components := tree{"securitySchemes": tree{"BearerToken": bearer()}}
	if len(schemas) > 0 {
		components["schemas"] = schemas
	}
	text, err := json.Marshal(tree{"openapi": "3.0.0", "info": b.info(), "paths": rendered, "components": components})
	if err != nil {
		return nil, err
	}
	return b.pack(text, of)
}

func bearer() tree {
	return tree{"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
}

// openAPI2 builds the whole document of version 2.
func (b *documentBuilder) openAPI2() (tree, error) {
	var all []pathItem
	for _, root := range b.roots() {
		all = append(all, root)
	}
	seen := map[string]bool{}
	for _, r := range b.resources {
		if key := documentKey(r); !seen[key] {
			seen[key] = true
			paths, _ := b.paths(key)
			all = append(all, paths...)
		}
	}
	paths, shared := tree{}, sharedParameters{}
	for i := range all {
		paths[all[i].path] = all[i].swagger(shared)
	}
	raw, err := b.schemas(all, b.resources)
	if err != nil {
		return nil, err
	}
	defs := tree{}
	for name, schema := range raw {
		var node any
		if err := json.Unmarshal(schema, &node); err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		if b.custom[name] {
			defs[name] = swaggerOfCustom(node)
		} else {
			defs[name] = swaggerOf(node)
		}
	}
	return tree{
		"swagger": "2.0", "info": b.info(), "paths": paths, "definitions": defs, "parameters": shared,
		"securityDefinitions": tree{"BearerToken": bearer()}, "security": []tree{{"BearerToken": []string{}}},
	}, nil
}
