package schema

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/removed"
)

// What is embedded is compressed: the text files next to these are for readers of the source.
//
//go:embed data/definitions.txt.gz
var packedDefinitions string

// embedded decompresses an embedded text. It is used so rarely that the result is not cached.
func embedded(packed string) string {
	zr, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		panic(err) // the build is broken; TestDataIsUpToDate reads all of it
	}
	var out strings.Builder
	if _, err := io.Copy(&out, zr); err != nil {
		panic(err)
	}
	return out.String()
}

// definitions are OpenAPI 3 schemas by name, still encoded.
type definitions map[string]json.RawMessage

// undescribed returns the definitions of a release as they are in the file, by the names of the Go types:
// with empty descriptions.
func undescribed(v release.Version) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(embedded(packedDefinitions)) {
			name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			schema, newer, changed := strings.Cut(rest, "\t")
			if v.Emulated() && changed {
				schema = newer
			}
			if schema != "" && typeOf(name).In(v) && !yield(name, schema) {
				return
			}
		}
	}
}

// typeOf looks a type up by its name in the releases.
func typeOf(name string) release.Type {
	dot := strings.LastIndexByte(name, '.')
	return release.TypeNamed(name[:dot], name[dot+1:])
}

// Definitions returns the OpenAPI 3 schemas of a name and of all that it refers to, without
// descriptions, with the fields of all releases.
func Definitions(v release.Version, name string) map[string]json.RawMessage {
	defs := make(definitions, 600)
	for goName, schema := range undescribed(v) {
		defs[packageName(goName)] = json.RawMessage(schema)
	}
	out := make(map[string]json.RawMessage)
	defs.closure(name, out)
	return out
}

const refPrefix = "#/components/schemas/"

// closure adds the definitions that a schema refers to, and those that they refer
// to, to wanted.
func (d definitions) closure(name string, wanted map[string]json.RawMessage) {
	raw, ok := d[name]
	if _, done := wanted[name]; done || !ok {
		return
	}
	wanted[name] = raw
	for rest := []byte(raw); ; {
		i := bytes.Index(rest, []byte(refPrefix))
		if i < 0 {
			return
		}
		rest = rest[i+len(refPrefix):]
		d.closure(string(rest[:bytes.IndexByte(rest, '"')]), wanted)
	}
}

// packageName turns the path of a package into the prefix that definitions use: "k8s.io/api/core/v1" becomes
// "io.k8s.api.core.v1". It does the same to a type's full name.
func packageName(path string) string {
	domain, rest, _ := strings.Cut(path, "/")
	return reverseDomain(domain) + "." + strings.ReplaceAll(rest, "/", ".")
}

func reverseDomain(domain string) string {
	parts := strings.Split(domain, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// names finds the definition of each kind of a catalogue.
type names struct {
	packages map[string]string // "apps/v1" -> "io.k8s.api.apps.v1"
	custom   []string          // keys of those of custom kinds
}

func newNames(resources []*kinds.Resource) *names {
	n := &names{packages: map[string]string{}}
	for _, r := range resources {
		switch {
		case !r.HasGoType():
			if _, known := n.packages[r.APIVersion()]; !known {
				n.packages[r.APIVersion()] = reverseDomain(r.Group) + "." + r.Version
				n.custom = append(n.custom, r.APIVersion())
			}
		default:
			group := path.Dir(removed.PackagePath(r.GoType().PkgPath())) // the type may belong to another version
			n.packages[r.APIVersion()] = packageName(path.Join(group, r.Version))
		}
	}
	return n
}

// avoidCollisions renames packages of custom kinds that collide with those of built-in ones: the group
// core.api.k8s.io reads backwards as the package of Pods.
func (n *names) avoidCollisions(builtin map[string]bool) {
	for _, apiVersion := range n.custom {
		if builtin[n.packages[apiVersion]] {
			n.packages[apiVersion] += ".custom"
		}
	}
}

// packages returns the packages of definitions.
func (d definitions) packages() map[string]bool {
	out := map[string]bool{}
	for name := range d {
		out[name[:strings.LastIndexByte(name, '.')]] = true
	}
	return out
}

// definition names a kind's definition, whether there is one or not.
func (n *names) definition(apiVersion, kind string) string {
	return n.packages[apiVersion] + "." + kind
}

// metaName names a definition of meta/v1.
func metaName(kind string) string {
	return packageName(reflect.TypeFor[metav1.Status]().PkgPath()) + "." + kind
}

// gvkExtension marks which kinds a definition or an operation is of.
const gvkExtension = "x-kubernetes-group-version-kind"

type gvkMark struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// marks collects the kinds of definitions.
func (n *names) marks(resources []*kinds.Resource) map[string][]gvkMark {
	out := map[string][]gvkMark{}
	seen := map[string]bool{}
	add := func(name string, m gvkMark) {
		key := fmt.Sprint(name, m)
		if !seen[key] {
			seen[key] = true
			out[name] = append(out[name], m)
		}
	}
	for _, r := range resources {
		add(n.definition(r.APIVersion(), r.Kind), gvkMark{r.Group, r.Kind, r.Version})
		if r.NewList != nil || !r.HasGoType() {
			add(n.definition(r.APIVersion(), r.ListKind), gvkMark{r.Group, r.ListKind, r.Version})
		}
		for _, sub := range r.Subresources {
			group, version := r.Group, r.Version
			if sub.Version != "" {
				group, version = sub.Group, sub.Version
			}
			m := gvkMark{group, sub.Kind, version}
			add(n.definition(apiVersion(group, version), sub.Kind), m)
		}
		add(metaName("DeleteOptions"), gvkMark{r.Group, "DeleteOptions", r.Version})
		add(metaName("WatchEvent"), gvkMark{r.Group, "WatchEvent", r.Version})
	}
	add(metaName("Status"), gvkMark{"", "Status", "v1"})
	for _, kind := range []string{"APIGroup", "APIGroupList", "APIResourceList", "APIVersions"} {
		add(metaName(kind), gvkMark{"", kind, "v1"})
	}
	return out
}

func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

// mark adds the kinds to an encoded schema.
func mark(raw json.RawMessage, marks []gvkMark) (json.RawMessage, error) {
	if len(marks) == 0 {
		return raw, nil
	}
	return extend(raw, gvkExtension, marks)
}

// extend adds a member to an encoded object that has some.
func extend(raw json.RawMessage, key string, value any) (json.RawMessage, error) {
	ext, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	out := append(bytes.TrimSuffix(bytes.Clone(raw), []byte("}")), `,"`+key+`":`...)
	return append(append(out, ext...), '}'), nil
}

// selectableExtension lists the selectable fields of a custom kind. In release 1.32, kinds without any have an empty
// list.
const selectableExtension = "x-kubernetes-selectable-fields"

type selectableMark struct {
	FieldPath string `json:"fieldPath"`
}

// selectable collects the selectable fields of the definitions of custom kinds and of
// their lists.
func (n *names) selectable(resources []*kinds.Resource) map[string][]selectableMark {
	out := map[string][]selectableMark{}
	for _, r := range resources {
		if r.HasGoType() || r.Storage == nil {
			continue
		}
		fields := []selectableMark{}
		for _, f := range r.Storage.Fields {
			if r.FieldLabels[f.Label] != "" {
				fields = append(fields, selectableMark{f.Label})
			}
		}
		if len(fields) == 0 && r.Release.Has(release.SelectableIfAny) {
			continue
		}
		out[n.definition(r.APIVersion(), r.Kind)] = fields
		out[n.definition(r.APIVersion(), r.ListKind)] = fields
	}
	return out
}

// swaggerOf rewrites a decoded OpenAPI 3 schema as OpenAPI 2: a reference and its siblings on one level, no
// defaults, no alternatives.
func swaggerOf(node any) any {
	switch node := node.(type) {
	case []any:
		for i := range node {
			node[i] = swaggerOf(node[i])
		}
	case map[string]any:
		if all, ok := node["allOf"].([]any); ok && len(all) == 1 {
			if ref, ok := all[0].(map[string]any)["$ref"]; ok {
				node["$ref"] = ref
				delete(node, "allOf")
			}
		}
		if ref, ok := node["$ref"].(string); ok {
			node["$ref"] = "#/definitions/" + strings.TrimPrefix(ref, refPrefix)
		}
		if _, ok := node["oneOf"]; ok && node["type"] == nil {
			node["type"] = "string"
		}
		for _, unknown := range []string{"default", "oneOf", "anyOf", "not", "nullable"} {
			delete(node, unknown)
		}
		swaggerChildren(node)
	}
	return node
}

func swaggerChildren(node map[string]any) {
	if properties, ok := node["properties"].(map[string]any); ok {
		for name, p := range properties {
			properties[name] = swaggerOf(p)
		}
	}
	for _, key := range []string{"items", "additionalProperties", "allOf"} {
		if child, ok := node[key]; ok {
			node[key] = swaggerOf(child)
		}
	}
}
