package schema

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
)

// parameter is a query or path parameter.
type parameter struct{ in, kind, text string }

var parameters = map[string]parameter{
	"name":                 {"path", "string", "the object's name"},
	"namespace":            {"path", "string", "the object's namespace"},
	"path":                 {"path", "string", "the path to reach behind the proxy"},
	"pretty":               {"query", "string", "If true, the answer is indented for human readers."},
	"allowWatchBookmarks":  {"query", "boolean", "Asks a watch for BOOKMARK events, which carry nothing but a resource version. The server decides when they come."},
	"continue":             {"query", "string", "The token of the previous chunk of a list. It expires with the history the server keeps; then the list is to be started anew."},
	"fieldSelector":        {"query", "string", "Restricts the objects to those whose fields match. Everything by default."},
	"labelSelector":        {"query", "string", "Restricts the objects to those whose labels match. Everything by default."},
	"limit":                {"query", "integer", "The largest number of objects to return in one chunk. If there are more, the answer's metadata.continue is set."},
	"resourceVersion":      {"query", "string", "The version of the data to answer from, read according to resourceVersionMatch."},
	"resourceVersionMatch": {"query", "string", "How resourceVersion is read: Exact or NotOlderThan."},
	"sendInitialEvents":    {"query", "boolean", "Begins a watch with the present objects as ADDED events, followed by a BOOKMARK that says so."},
	"timeoutSeconds":       {"query", "integer", "How long a list or watch may take."},
	"watch":                {"query", "boolean", "Streams changes as they happen instead of returning a list."},
	"dryRun":               {"query", "string", "With the value All, every step of the request is done except that nothing is stored."},
	"fieldManager":         {"query", "string", "The name under which the server records who set the fields that this request changes. Required for apply patches."},
	"fieldValidation":      {"query", "string", "What becomes of unknown and duplicate fields: Ignore drops them, Warn drops them with a warning, Strict refuses the request."},
	"force":                {"query", "boolean", "Lets an apply patch take fields that others own. Only for apply patches."},
	"gracePeriodSeconds":   {"query", "integer", "How long the object may take to end; zero deletes at once."},
	"orphanDependents":     {"query", "boolean", "Deprecated, use propagationPolicy: whether dependents are left alone."},
	"propagationPolicy":    {"query", "string", "What becomes of dependents: Orphan, Background or Foreground."},
	"ignoreStoreReadErrorWithClusterBreakingPotential": {"query", "boolean", "Deletes an object that cannot be read from the store, without finalizers and preconditions."},
}

var (
	listQuery   = []string{"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"}
	writeQuery  = []string{"dryRun", "fieldManager", "fieldValidation"}
	patchQuery  = append(slices.Clone(writeQuery), "force")
	deleteQuery = []string{"dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents", "propagationPolicy"}
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
	query        []string
	answer       string // definition of the answer; "" for text
	codes        []int  // of success
	consumes     []string
	produces     []string
}

// pathItem is one path with its operations.
type pathItem struct {
	path       string
	parameters []string
	operations []operation
}

var (
	plainTypes = []string{codecs.JSON, codecs.YAML, codecs.Protobuf, codecs.CBOR}
	watchTypes = append(slices.Clone(plainTypes), codecs.JSON+";stream=watch", codecs.Protobuf+";stream=watch", codecs.CBORSeq)
	patchTypes = []string{codecs.PatchApplyCBOR, codecs.PatchApplyYAML, codecs.PatchJSON, codecs.PatchMerge, codecs.PatchStrategic}
)

// pathBuilder makes the paths of one resource.
type pathBuilder struct {
	names *names
	r     *kinds.Resource
	group string // "Core", "RbacAuthorization"
	base  string // "/apis/apps/v1"
	out   []pathItem
}

// resourcePaths lists the paths of a resource and its subresources.
func resourcePaths(n *names, r *kinds.Resource) []pathItem {
	b := &pathBuilder{names: n, r: r, group: groupTag(r.Group), base: "/apis/" + r.APIVersion()}
	if r.Group == "" {
		b.base = "/api/" + r.Version
	}
	scope, scopeParams := "", []string(nil)
	if r.Namespaced {
		scope, scopeParams = "/namespaces/{namespace}", []string{"namespace"}
		if slices.Contains(r.Verbs, "list") {
			b.add(b.base+"/"+r.Plural, nil, b.list("ForAllNamespaces"))
		}
	}
	collection := b.base + scope + "/" + r.Plural
	b.add(collection, scopeParams, b.list(""), b.create(), b.deleteCollection())
	item := append([]string{"name"}, scopeParams...)
	b.add(collection+"/{name}", item, b.get(), b.update(), b.patch(), b.delete())
	for i := range r.Subresources {
		b.subresource(collection+"/{name}/", item, &r.Subresources[i])
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

func (b *pathBuilder) add(path string, params []string, ops ...*operation) {
	item := pathItem{path: path, parameters: append(slices.Clone(params), "pretty")}
	for _, op := range ops {
		if op != nil {
			item.operations = append(item.operations, *op)
		}
	}
	if len(item.operations) > 0 {
		b.out = append(b.out, item)
	}
}

// op makes an operation on the resource's kind, or nil if its verbs lack verb.
func (b *pathBuilder) op(verb, method, action, id string) *operation {
	if !slices.Contains(b.r.Verbs, verb) {
		return nil
	}
	namespaced := ""
	if b.r.Namespaced {
		namespaced = "Namespaced"
	}
	return &operation{
		method: method, action: action,
		id:       id + b.group + upperFirst(b.r.Version) + namespaced + b.r.Kind,
		tag:      lowerFirst(b.group) + "_" + b.r.Version,
		kind:     gvkMark{b.r.Group, b.r.Kind, b.r.Version},
		answer:   b.names.of(b.r.APIVersion(), b.r.Kind),
		codes:    []int{200},
		produces: b.types(plainTypes),
	}
}

// types leaves out what custom resources cannot be read or written as.
func (b *pathBuilder) types(all []string) []string {
	if !b.r.Custom {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(t string) bool {
		return strings.HasPrefix(t, codecs.Protobuf) || t == codecs.PatchStrategic
	})
}

func (b *pathBuilder) list(suffix string) *operation {
	op := b.op("list", "get", "list", "list")
	if op == nil {
		return nil
	}
	if suffix != "" {
		op.id = "list" + b.group + upperFirst(b.r.Version) + b.r.Kind + suffix
	}
	op.text = "list or watch objects of kind " + b.r.Kind
	op.answer = b.names.of(b.r.APIVersion(), b.r.ListKind)
	op.query = listQuery
	op.produces = b.types(watchTypes)
	return op
}

func (b *pathBuilder) create() *operation {
	op := b.op("create", "post", "post", "create")
	if op == nil {
		return nil
	}
	op.text = "create an object of kind " + b.r.Kind
	op.body, op.query, op.codes = op.answer, writeQuery, []int{200, 201, 202}
	return op
}

func (b *pathBuilder) deleteCollection() *operation {
	op := b.op("deletecollection", "delete", "deletecollection", "deleteCollection")
	if op == nil {
		return nil
	}
	op.text = "delete the objects of kind " + b.r.Kind + " in a collection"
	op.body, op.bodyOptional, op.answer = metaName("DeleteOptions"), true, metaName("Status")
	op.query = slices.Sorted(slices.Values(slices.Concat(deleteQuery, []string{
		"continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds"})))
	return op
}

func (b *pathBuilder) get() *operation {
	op := b.op("get", "get", "get", "read")
	if op != nil {
		op.text = "read the named object of kind " + b.r.Kind
	}
	return op
}

func (b *pathBuilder) update() *operation {
	op := b.op("update", "put", "put", "replace")
	if op == nil {
		return nil
	}
	op.text = "replace the named object of kind " + b.r.Kind
	op.body, op.query, op.codes = op.answer, writeQuery, []int{200, 201}
	return op
}

func (b *pathBuilder) patch() *operation {
	op := b.op("patch", "patch", "patch", "patch")
	if op == nil {
		return nil
	}
	op.text = "change parts of the named object of kind " + b.r.Kind
	op.body, op.query, op.codes, op.consumes = metaName("Patch"), patchQuery, []int{200, 201}, b.types(patchTypes)
	return op
}

func (b *pathBuilder) delete() *operation {
	op := b.op("delete", "delete", "delete", "delete")
	if op == nil {
		return nil
	}
	op.text = "delete the named object of kind " + b.r.Kind
	op.body, op.bodyOptional, op.query, op.codes = metaName("DeleteOptions"), true, deleteQuery, []int{200, 202}
	if s := b.r.Storage; s == nil || !s.ReturnDeletedObject {
		op.answer = metaName("Status")
	}
	return op
}

// subresource adds the path of a subresource. Those that stream or proxy speak no kind.
func (b *pathBuilder) subresource(prefix string, params []string, sub *kinds.Subresource) {
	group, version := b.r.Group, b.r.Version
	if sub.Version != "" {
		group, version = sub.Group, sub.Version
	}
	part := *b
	r := *b.r
	r.Verbs = sub.Verbs
	part.r, part.out = &r, nil
	definition := part.names.of(apiVersion(group, version), sub.Kind)
	connects := strings.HasSuffix(sub.Kind, "Options")
	ops := []*operation{part.get(), part.create(), part.update(), part.patch()}
	if connects {
		ops = append(ops, part.delete())
	}
	for _, op := range ops {
		if op == nil {
			continue
		}
		op.kind = gvkMark{group, sub.Kind, version}
		op.id += upperFirst(sub.Name)
		op.text = strings.TrimSuffix(op.text, " of kind "+r.Kind) + "'s " + sub.Name
		if connects {
			op.action, op.answer, op.body, op.query, op.codes = "connect", "", "", nil, []int{200}
			op.id = "connect" + upperFirst(op.method) + op.id
			op.produces = []string{"*/*"}
			continue
		}
		op.answer = definition
		if op.body != "" && op.method != "patch" {
			op.body = definition
		}
	}
	part.add(prefix+sub.Name, params, ops...)
	if sub.Name == "proxy" {
		for _, op := range ops {
			if op != nil {
				op.id += "WithPath"
			}
		}
		part.add(prefix+"proxy/{path}", append(slices.Clone(params), "path"), ops...)
	}
	b.out = append(b.out, part.out...)
}

// rootPaths are the paths of one document that belong to no resource.
func rootPath(path, answer, text, tag string) pathItem {
	op := operation{
		method: "get", id: "get" + upperFirst(tag) + "Info", tag: tag, text: text,
		answer: answer, codes: []int{200}, produces: []string{codecs.JSON, codecs.YAML, codecs.Protobuf},
	}
	if answer == "" {
		op.produces = []string{codecs.JSON}
	}
	return pathItem{path: path, operations: []operation{op}}
}
