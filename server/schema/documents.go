package schema

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"github.com/klauspost/compress/gzip"
	"google.golang.org/protobuf/proto"

	"github.com/rowlock/rowlock/server/kinds"
)

// Documents makes the OpenAPI documents of a catalogue, each when it is first asked
// for, and keeps them compressed until the catalogue changes. It is safe for
// concurrent use; one document is built at a time.
type Documents struct {
	catalogue *kinds.Catalogue
	version   string
	// CustomSchema gives the OpenAPI 3 schema of a custom resource. Nil, or a nil
	// answer, stands for an object of unknown fields. Set before first use.
	CustomSchema func(*kinds.Resource) json.RawMessage
	// CBOR says that bodies may be CBOR.
	CBOR bool
	// Now is the clock for Last-Modified and Expires.
	Now func() time.Time

	mu         sync.Mutex
	generation uint64
	packed     []byte               // the definitions of built-in types; nil until a document is made
	kept       map[string]*document // by the path below /openapi/v3; "" for the index
	swagger    *document
	swaggerPB  *document
}

// document is one encoded document.
type document struct {
	packed   []byte // gzip
	etag     string
	modified time.Time
	of       []*kinds.Resource // what it describes
	protobuf *document         // of version 3, the same in protobuf; nil until asked for
}

// NewDocuments makes the documents of a catalogue for a server of a release ("1.32").
func NewDocuments(catalogue *kinds.Catalogue, version string) *Documents {
	return &Documents{catalogue: catalogue, version: version, Now: time.Now, kept: map[string]*document{}}
}

// library is what building documents needs, for the time of one request.
type library struct {
	*Documents
	defs      definitions
	resources []*kinds.Resource
	names     *names
	types     *wireTypes
	custom    map[string]bool // names of definitions of custom kinds
}

func (d *Documents) pack(text []byte, of []*kinds.Resource) (*document, error) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	if _, err := zw.Write(text); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return &document{
		packed:   bytes.Clone(buf.Bytes()),
		etag:     fmt.Sprintf("%X", sha512.Sum512(text)),
		modified: d.Now(),
		of:       of,
	}, nil
}

// refresh forgets the documents that the catalogue has left behind. The caller holds mu.
func (d *Documents) refresh() []*kinds.Resource {
	resources, generation := d.catalogue.Snapshot()
	if generation == d.generation {
		return resources
	}
	d.generation, d.swagger, d.swaggerPB = generation, nil, nil
	delete(d.kept, "")
	for key, doc := range d.kept {
		if len(doc.of) > 0 && !slices.Equal(doc.of, ofVersion(resources, key)) {
			delete(d.kept, key)
		}
	}
	return resources
}

// ofVersion picks the resources of "api/v1" or "apis/apps/v1".
func ofVersion(resources []*kinds.Resource, key string) []*kinds.Resource {
	var out []*kinds.Resource
	for _, r := range resources {
		if versionKey(r) == key {
			out = append(out, r)
		}
	}
	return out
}

func versionKey(r *kinds.Resource) string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return "apis/" + r.APIVersion()
}

func (d *Documents) open(resources []*kinds.Resource) (*library, error) {
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
	l := &library{Documents: d, defs: defs, resources: resources, names: newNames(resources), types: newWireTypes(d.CBOR), custom: map[string]bool{}}
	l.names.avoid(defs)
	for _, r := range resources {
		if !r.HasGoType() {
			l.addCustom(r)
		}
	}
	return l, nil
}

// addCustom adds the definitions of a custom kind and its list.
func (l *library) addCustom(r *kinds.Resource) {
	var schema json.RawMessage
	if l.CustomSchema != nil {
		schema = l.CustomSchema(r)
	}
	if schema == nil {
		schema = json.RawMessage(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)
	}
	l.defs[l.names.of(r.APIVersion(), r.Kind)] = schema
	l.custom[l.names.of(r.APIVersion(), r.Kind)] = true
	list, err := json.Marshal(tree{
		"description": r.ListKind + " is a list of " + r.Kind,
		"type":        "object",
		"required":    []string{"items"},
		"properties": tree{
			"apiVersion": tree{"type": "string", "description": "The version of this form of the list."},
			"kind":       tree{"type": "string", "description": "The kind of the list."},
			"metadata":   tree{"allOf": []tree{{"$ref": refPrefix + metaName("ListMeta")}}, "description": "What is known of the list."},
			"items":      tree{"type": "array", "items": tree{"$ref": refPrefix + l.names.of(r.APIVersion(), r.Kind)}, "description": "The objects."},
		},
	})
	if err == nil {
		l.defs[l.names.of(r.APIVersion(), r.ListKind)] = list
	}
}

// paths are those of one document of version 3, or nil for a key that has none.
func (l *library) paths(key string) ([]pathItem, []*kinds.Resource) {
	if root, ok := l.roots()[key]; ok {
		return []pathItem{root}, nil
	}
	of := ofVersion(l.resources, key)
	if len(of) == 0 {
		return nil, nil
	}
	tag := lowerFirst(groupTag(of[0].Group)) + "_" + of[0].Version
	out := []pathItem{rootPath("/"+key+"/", metaName("APIResourceList"), "get available resources", "get"+groupTag(of[0].Group)+upperFirst(of[0].Version)+"APIResources", tag)}
	for _, r := range of {
		out = append(out, resourcePaths(l.names, l.types, r)...)
	}
	return out, of
}

// roots are the documents about everything but resources.
func (l *library) roots() map[string]pathItem {
	out := map[string]pathItem{
		".well-known/openid-configuration": rootPath("/.well-known/openid-configuration/", "", "get the issuer's OpenID configuration", "getServiceAccountIssuerOpenIDConfiguration", "WellKnown"),
		"openid/v1/jwks":                   rootPath("/openid/v1/jwks/", "", "get the keys that sign service account tokens", "getServiceAccountIssuerOpenIDKeyset", "openid"),
		"version":                          rootPath("/version/", "io.k8s.apimachinery.pkg.version.Info", "get the version of this server", "getCodeVersion", "version"),
		"api":                              rootPath("/api/", metaName("APIVersions"), "get available API versions", "getCoreAPIVersions", "core"),
		"apis":                             rootPath("/apis/", metaName("APIGroupList"), "get available API versions", "getAPIVersions", "apis"),
	}
	for _, r := range l.resources {
		if r.Group != "" {
			out["apis/"+r.Group] = rootPath("/apis/"+r.Group+"/", metaName("APIGroup"), "get information of a group", "get"+groupTag(r.Group)+"APIGroup", lowerFirst(groupTag(r.Group)))
		}
	}
	return out
}

// keys lists the documents of version 3.
func (l *library) keys() []string {
	keys := l.roots()
	for _, r := range l.resources {
		keys[versionKey(r)] = pathItem{}
	}
	return slices.Sorted(maps.Keys(keys))
}

// schemas collects the definitions that paths need, marked with their kinds.
func (l *library) schemas(paths []pathItem, of []*kinds.Resource) (map[string]json.RawMessage, error) {
	wanted := map[string]json.RawMessage{}
	for _, name := range uses(paths) {
		l.defs.closure(name, wanted)
	}
	for _, r := range of {
		l.defs.closure(l.names.of(r.APIVersion(), r.Kind), wanted)
	}
	marks := l.names.marks(slices.Concat(slices.DeleteFunc(slices.Clone(l.resources), func(r *kinds.Resource) bool { return !r.HasGoType() }), of))
	for name, raw := range wanted {
		marked, err := mark(raw, marks[name])
		if err != nil {
			return nil, err
		}
		wanted[name] = marked
	}
	return wanted, nil
}

func (l *library) info() tree { return tree{"title": "Kubernetes", "version": l.version} }

// openAPI3 builds one document of version 3, or nil for an unknown key.
func (l *library) openAPI3(key string) (*document, error) {
	paths, of := l.paths(key)
	if paths == nil {
		return nil, nil
	}
	rendered := tree{}
	for i := range paths {
		rendered[paths[i].path] = paths[i].openAPI3()
	}
	schemas, err := l.schemas(paths, of)
	if err != nil {
		return nil, err
	}
	components := tree{"securitySchemes": tree{"BearerToken": bearer()}}
	if len(schemas) > 0 {
		components["schemas"] = schemas
	}
	text, err := json.Marshal(tree{"openapi": "3.0.0", "info": l.info(), "paths": rendered, "components": components})
	if err != nil {
		return nil, err
	}
	return l.pack(text, of)
}

func bearer() tree {
	return tree{"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
}

// openAPI2 builds the whole document of version 2.
func (l *library) openAPI2() (tree, error) {
	var all []pathItem
	for _, root := range l.roots() {
		all = append(all, root)
	}
	seen := map[string]bool{}
	for _, r := range l.resources {
		if key := versionKey(r); !seen[key] {
			seen[key] = true
			paths, _ := l.paths(key)
			all = append(all, paths...)
		}
	}
	paths, shared := tree{}, sharedParameters{}
	for i := range all {
		paths[all[i].path] = all[i].swagger(shared)
	}
	raw, err := l.schemas(all, l.resources)
	if err != nil {
		return nil, err
	}
	defs := tree{}
	for name, schema := range raw {
		var node any
		if err := json.Unmarshal(schema, &node); err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		if l.custom[name] {
			defs[name] = swaggerOfCustom(node)
		} else {
			defs[name] = swaggerOf(node)
		}
	}
	return tree{
		"swagger": "2.0", "info": l.info(), "paths": paths, "definitions": defs, "parameters": shared,
		"securityDefinitions": tree{"BearerToken": bearer()}, "security": []tree{{"BearerToken": []string{}}},
	}, nil
}

// group returns a document of version 3, or nil for an unknown one.
func (d *Documents) group(key string) (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resources := d.refresh()
	if doc := d.kept[key]; doc != nil && key != "" {
		return doc, nil
	}
	l, err := d.open(resources)
	if err != nil {
		return nil, err
	}
	doc, err := l.openAPI3(key)
	if doc != nil {
		d.kept[key] = doc
	}
	return doc, err
}

// groupProtobuf returns a document of version 3 in protobuf, or nil for an unknown
// one. It has the tag of the JSON form: both say the same.
func (d *Documents) groupProtobuf(key string) (*document, error) {
	doc, err := d.group(key)
	if doc == nil || err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if doc.protobuf != nil {
		return doc.protobuf, nil
	}
	text, err := unzip(doc.packed)
	if err != nil {
		return nil, err
	}
	parsed, err := openapi_v3.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
	if err != nil {
		return nil, err
	}
	packed, err := d.pack(wire, nil)
	if err != nil {
		return nil, err
	}
	packed.etag, packed.modified = doc.etag, doc.modified
	doc.protobuf = packed
	return packed, nil
}

// index returns the list of all documents of version 3, with their hashes.
func (d *Documents) index() (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resources := d.refresh()
	if doc := d.kept[""]; doc != nil {
		return doc, nil
	}
	l, err := d.open(resources)
	if err != nil {
		return nil, err
	}
	paths := tree{}
	for _, key := range l.keys() {
		doc := d.kept[key]
		if doc == nil {
			if doc, err = l.openAPI3(key); err != nil {
				return nil, err
			}
			d.kept[key] = doc
		}
		paths[key] = tree{"serverRelativeURL": documentURL(key, doc.etag)}
	}
	text, err := json.Marshal(tree{"paths": paths})
	if err != nil {
		return nil, err
	}
	doc, err := d.pack(text, nil)
	if err == nil {
		d.kept[""] = doc
	}
	return doc, err
}

func documentURL(key, etag string) string {
	u := url.URL{Path: "/openapi/v3/" + strings.TrimPrefix(key, "/"), RawQuery: url.Values{"hash": {etag}}.Encode()}
	return u.String()
}

// whole returns the document of version 2 as JSON or as protobuf.
func (d *Documents) whole(protobuf bool) (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resources := d.refresh()
	slot := &d.swagger
	if protobuf {
		slot = &d.swaggerPB
	}
	if *slot != nil {
		return *slot, nil
	}
	l, err := d.open(resources)
	if err != nil {
		return nil, err
	}
	doc, err := l.openAPI2()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if protobuf {
		if text, err = gnostic(text); err != nil {
			return nil, err
		}
	}
	packed, err := d.pack(text, nil)
	if err == nil {
		*slot = packed
	}
	return packed, err
}
