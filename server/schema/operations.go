package schema

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
)

// operation is one method of one path.
type operation struct {
	method       string // "get"
	action       string // x-kubernetes-action; "" where no kind is meant
	id           string
	tag          string
	text         string
	kind         gvkMark
	body         string // definition of the request body; "" for none
	bodyOptional bool
	parameters   []parameter
	answer       string // definition of the answer; "" for text
	codes        []int  // of success
	consumes     []string
	produces     []string
}

// pathItem is one path with its operations.
type pathItem struct {
	path       string
	parameters []parameter // of all operations
	operations []operation
}

// wireTypes are the media types of bodies.
type wireTypes struct{ plain, watch, patch []string }

var (
	anything     = []string{"*/*"}
	typedBodies  = []string{codecs.JSON, codecs.YAML, codecs.Protobuf}
	customBodies = []string{codecs.JSON, codecs.YAML}
)

// newWireTypes lists the media types of built-in kinds, with CBOR or without.
func newWireTypes(cbor bool) *wireTypes {
	t := &wireTypes{
		plain: typedBodies,
		watch: []string{codecs.JSON, codecs.YAML, codecs.Protobuf, codecs.JSON + ";stream=watch", codecs.Protobuf + ";stream=watch"},
		patch: []string{codecs.PatchJSON, codecs.PatchMerge, codecs.PatchStrategic, codecs.PatchApplyYAML},
	}
	if cbor {
		t.plain = append(slices.Clone(t.plain), codecs.CBOR)
		t.watch = append(t.watch, codecs.CBOR, codecs.CBORSeq)
		t.patch = append(t.patch, codecs.PatchApplyCBOR)
	}
	return t
}

// pathBuilder makes the paths of one resource.
type pathBuilder struct {
	names *names
	types *wireTypes
	r     *kinds.Resource
	group string // "Core", "RbacAuthorization"
	root  string // "/apis/apps/v1"
	out   []pathItem
}

// resourcePaths lists the paths of a resource and its subresources.
func resourcePaths(n *names, types *wireTypes, r *kinds.Resource) []pathItem {
	b := &pathBuilder{names: n, types: types, r: r, group: groupTag(r.Group), root: "/apis/" + r.APIVersion()}
	if r.Group == "" {
		b.root = "/api/" + r.Version
	}
	scope, around := "/", []parameter{inPretty}
	if r.Namespaced {
		scope = "/namespaces/{namespace}/"
		b.add(b.root+"/"+r.Plural, around, b.list("ForAllNamespaces"))
		b.watch("/"+r.Plural, around, "ForAllNamespaces", "")
		around = []parameter{inPretty, inNamespace}
	}
	collection := scope + r.Plural
	b.add(b.root+collection, around, b.list(""), b.create(), b.deleteCollection())
	b.watch(collection, around, "", "")
	item := append(slices.Clone(around), inName(r.Kind))
	b.add(b.root+collection+"/{name}", item, b.get(), b.update(), b.patch(), b.delete())
	b.watch(collection+"/{name}", item, "", "name")
	for i := range r.Subresources {
		b.subresource(b.root+collection+"/{name}/", around, &r.Subresources[i])
	}
	return b.out
}

// groupTag turns a group into part of an identifier: "rbac.authorization.k8s.io" is
// "RbacAuthorization", the core group "Core".
func groupTag(group string) string {
	if group == "" {
		return "Core"
	}
	var out strings.Builder
	for _, part := range strings.Split(strings.TrimSuffix(group, ".k8s.io"), ".") {
		out.WriteString(upperFirst(part))
	}
	return out.String()
}

func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[n:]
}

// article returns a noun with its article before it: "an Ingress".
func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeiouAEIOU", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

func (b *pathBuilder) add(path string, around []parameter, ops ...*operation) {
	item := pathItem{path: path}
	for _, op := range ops {
		if op != nil {
			made := *op
			made.parameters = sortParameters(slices.Concat(around, op.parameters))
			item.operations = append(item.operations, made)
		}
	}
	if len(item.operations) > 0 {
		item.parameters = lift(item.operations)
		b.out = append(b.out, item)
	}
}

// op makes an operation on the resource's kind, or nil if its verbs lack verb.
func (b *pathBuilder) op(verb, method, action, id string) *operation {
	if !slices.Contains(b.r.Verbs, verb) {
		return nil
	}
	op := &operation{
		method: method, action: action, id: b.id(id, "", ""),
		tag:      lowerFirst(b.group) + "_" + b.r.Version,
		kind:     gvkMark{b.r.Group, b.r.Kind, b.r.Version},
		answer:   b.names.definition(b.r.APIVersion(), b.r.Kind),
		codes:    []int{200},
		consumes: anything, produces: b.types.plain,
	}
	if !b.r.HasGoType() {
		op.consumes, op.produces = customBodies, customBodies
	}
	return op
}

// id names an operation on the kind: "listCoreV1NamespacedPod".
func (b *pathBuilder) id(verb, what, suffix string) string {
	if b.r.Namespaced && suffix != "ForAllNamespaces" {
		what += "Namespaced"
	}
	return verb + b.group + upperFirst(b.r.Version) + what + b.r.Kind + suffix
}

func (b *pathBuilder) list(suffix string) *operation {
	op := b.op("list", "get", "list", "")
	if op == nil {
		return nil
	}
	op.id = b.id("list", "", suffix)
	op.text = "list or watch objects of kind " + b.r.Kind
	op.answer = b.names.definition(b.r.APIVersion(), b.r.ListKind)
	op.parameters = b.query("ListOptions")
	if !b.r.HasGoType() {
		op.text = "list objects of kind " + b.r.Kind
	} else {
		op.produces = b.types.watch
	}
	return op
}

// watch adds the path below /watch/ of a collection or an object.
func (b *pathBuilder) watch(path string, around []parameter, suffix, name string) {
	if !b.r.HasGoType() {
		return
	}
	op := b.op("watch", "get", "watchlist", "")
	if op == nil {
		return
	}
	const instead = " deprecated: use the 'watch' parameter with a list operation instead"
	if name != "" {
		op.action, op.id = "watch", b.id("watch", "", "")
		op.text = "watch changes to an object of kind " + b.r.Kind + "." + instead + ", filtered to a single item with the 'fieldSelector' parameter."
	} else {
		op.id = strings.TrimSuffix(b.id("watch", "", suffix), suffix) + "List" + suffix
		op.text = "watch individual changes to a list of " + b.r.Kind + "." + instead + "."
	}
	op.answer, op.parameters, op.produces = metaName("WatchEvent"), b.query("ListOptions"), b.types.watch
	b.add(b.root+"/watch"+path, around, op)
}

func (b *pathBuilder) create() *operation {
	op := b.op("create", "post", "post", "create")
	if op == nil {
		return nil
	}
	op.text = "create " + article(b.r.Kind)
	op.body, op.parameters, op.codes = op.answer, b.query("CreateOptions"), []int{200, 201, 202}
	return op
}

func (b *pathBuilder) deleteCollection() *operation {
	op := b.op("deletecollection", "delete", "deletecollection", "")
	if op == nil {
		return nil
	}
	op.id = b.id("delete", "Collection", "")
	op.text = "delete collection of " + b.r.Kind
	op.answer = metaName("Status")
	if !b.r.HasGoType() {
		op.parameters = b.query("ListOptions")
		return op
	}
	op.body, op.bodyOptional = metaName("DeleteOptions"), true
	op.parameters = slices.DeleteFunc(b.query("DeleteOptions", "ListOptions"), func(p parameter) bool {
		return p.name == "watch" || p.name == "allowWatchBookmarks"
	})
	return op
}

func (b *pathBuilder) get() *operation {
	op := b.op("get", "get", "get", "read")
	if op != nil {
		op.text = "read the specified " + b.r.Kind
		if !b.r.HasGoType() {
			op.parameters = b.query("GetOptions")
		}
	}
	return op
}

func (b *pathBuilder) update() *operation {
	op := b.op("update", "put", "put", "replace")
	if op == nil {
		return nil
	}
	op.text = "replace the specified " + b.r.Kind
	op.body, op.parameters, op.codes = op.answer, b.query("UpdateOptions"), []int{200, 201}
	return op
}

func (b *pathBuilder) patch() *operation {
	op := b.op("patch", "patch", "patch", "patch")
	if op == nil {
		return nil
	}
	op.text = "partially update the specified " + b.r.Kind
	op.body, op.parameters, op.codes, op.consumes = metaName("Patch"), b.query("PatchOptions"), []int{200, 201}, b.types.patch
	if !b.r.HasGoType() {
		op.codes = []int{200}
		op.consumes = slices.DeleteFunc(slices.Clone(b.types.patch), func(t string) bool { return t == codecs.PatchStrategic })
	}
	return op
}

func (b *pathBuilder) delete() *operation {
	op := b.op("delete", "delete", "delete", "delete")
	if op == nil {
		return nil
	}
	op.text = "delete " + article(b.r.Kind)
	op.body, op.bodyOptional, op.parameters, op.codes = metaName("DeleteOptions"), true, b.query("DeleteOptions"), []int{200, 202}
	// A stock server documents the same for namespaces, although it answers with the object.
	if s := b.r.Storage; s == nil || !s.ReturnDeletedObject || b.r.Group == "" && b.r.Kind == "Namespace" {
		op.answer = metaName("Status")
	}
	return op
}

// rootPath returns a path of a document that belongs to no resource.
func rootPath(path, answer, text, id, tag string) pathItem {
	op := operation{
		method: "get", id: id, tag: tag, text: text, answer: answer,
		codes: []int{200}, consumes: typedBodies, produces: typedBodies,
	}
	if answer == "" || tag == "version" {
		op.consumes, op.produces = nil, []string{codecs.JSON}
	}
	if tag == "openid" {
		op.produces = []string{"application/jwk-set+json"}
	}
	if tag == "version" {
		op.consumes = op.produces
	}
	return pathItem{path: path, operations: []operation{op}}
}
