package schema

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/kinds"
)

// subresource adds the paths of a subresource. Those that stream or proxy have no kind.
func (b *pathBuilder) subresource(prefix string, around []parameter, sub *kinds.Subresource) {
	if strings.HasSuffix(sub.Kind, "Options") {
		b.connect(prefix, around, sub)
		return
	}
	group, version := b.r.Group, b.r.Version
	if sub.Version != "" {
		group, version = sub.Group, sub.Version
	}
	kind := gvkMark{group, sub.Kind, version}
	definition := b.names.definition(apiVersion(group, version), sub.Kind)
	if !b.r.HasGoType() { // a scale counts as an operation on its object
		kind = gvkMark{b.r.Group, b.r.Kind, b.r.Version}
	}
	part := *b
	r := *b.r
	r.Verbs = sub.Verbs
	part.r, part.out = &r, nil
	ops := []*operation{part.get(), part.create(), part.update(), part.patch()}
	for _, op := range ops {
		if op == nil {
			continue
		}
		op.kind = kind
		op.id += upperFirst(sub.Name)
		op.answer = definition
		if op.body != "" && op.method != "patch" {
			op.body = definition
		}
		verb, object, _ := strings.Cut(op.text, " the specified ")
		switch op.method {
		case "post":
			op.text = "create " + sub.Name + " of " + article(r.Kind)
		default:
			op.text = verb + " " + sub.Name + " of the specified " + object
		}
		if sub.Name == "log" {
			op.answer, op.parameters = "", b.query("PodLogOptions")
			op.produces = append([]string{"text/plain"}, op.produces...)
		}
	}
	part.add(prefix+sub.Name, append(slices.Clone(around), inName(kind.Kind)), ops...)
	b.out = append(b.out, part.out...)
}

// The methods of a connection: those that proxy take all.
var (
	streamMethods = []string{http.MethodGet, http.MethodPost}
	proxyMethods  = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions}
)

// connect adds the paths of a subresource that is a connection.
func (b *pathBuilder) connect(prefix string, around []parameter, sub *kinds.Subresource) {
	methods := streamMethods
	if slices.Contains(sub.Verbs, "delete") {
		methods = proxyMethods
	}
	make := func(suffix string) (ops []*operation) {
		for _, method := range methods {
			lower := strings.ToLower(method)
			ops = append(ops, &operation{
				method: lower, action: "connect", tag: lowerFirst(b.group) + "_" + b.r.Version,
				id:         b.id("connect", upperFirst(lower), upperFirst(sub.Name)+suffix),
				text:       "connect " + method + " requests to " + sub.Name + " of " + b.r.Kind,
				kind:       gvkMark{b.r.Group, sub.Kind, b.r.Version},
				parameters: b.query(sub.Kind), codes: []int{http.StatusOK}, consumes: anything, produces: anything,
			})
		}
		return ops
	}
	around = append(slices.Clone(around), inName(sub.Kind))
	around = slices.DeleteFunc(around, func(p parameter) bool { return p == inPretty })
	b.add(prefix+sub.Name, around, make("")...)
	if sub.Name == "proxy" {
		b.add(prefix+"proxy/{path}", append(slices.Clone(around), inPath), make("WithPath")...)
	}
}
