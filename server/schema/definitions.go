package schema

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

//go:embed data/definitions.json.gz
var packedDefinitions []byte

// definitions are OpenAPI 3 schemas by name, still encoded. They are unpacked for
// one document and dropped again: nobody needs them twice.
type definitions map[string]json.RawMessage

func unpackDefinitions() (definitions, error) {
	zr, err := gzip.NewReader(bytes.NewReader(packedDefinitions))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		return nil, err
	}
	defs := make(definitions, 600)
	for line := range bytes.Lines(text) {
		name, schema, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if !ok {
			return nil, fmt.Errorf("definition without a schema: %.40q", line)
		}
		defs[string(name)] = schema
	}
	return defs, nil
}

// Definitions are the OpenAPI 3 schemas of a name and of all that it refers to.
func Definitions(name string) (map[string]json.RawMessage, error) {
	defs, err := unpackDefinitions()
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage)
	defs.closure(name, out)
	return out, nil
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

func packageName(path string) string {
	domain, rest, _ := strings.Cut(path, "/")
	return reverseDomain(domain) + "." + strings.ReplaceAll(rest, "/", ".")
}

func reverseDomain(domain string) string {
	parts := strings.Split(domain, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
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
			n.packages[r.APIVersion()] = packageName(r.GoType().PkgPath())
		}
	}
	return n
}

// avoid renames packages of custom kinds that are those of built-in ones: the group
// core.api.k8s.io reads backwards as the package of Pods.
func (n *names) avoid(builtin definitions) {
	taken := map[string]bool{}
	for name := range builtin {
		taken[name[:strings.LastIndexByte(name, '.')+1]] = true
	}
	for _, apiVersion := range n.custom {
		if taken[n.packages[apiVersion]+"."] {
			n.packages[apiVersion] += ".custom"
		}
	}
}

// of names a kind's definition, whether there is one or not.
func (n *names) of(apiVersion, kind string) string { return n.packages[apiVersion] + "." + kind }

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
		add(n.of(r.APIVersion(), r.Kind), gvkMark{r.Group, r.Kind, r.Version})
		if r.NewList != nil || !r.HasGoType() {
			add(n.of(r.APIVersion(), r.ListKind), gvkMark{r.Group, r.ListKind, r.Version})
		}
		for _, sub := range r.Subresources {
			group, version := r.Group, r.Version
			if sub.Version != "" {
				group, version = sub.Group, sub.Version
			}
			m := gvkMark{group, sub.Kind, version}
			add(n.of(apiVersion(group, version), sub.Kind), m)
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
	ext, err := json.Marshal(marks)
	if err != nil {
		return nil, err
	}
	out := append(bytes.TrimSuffix(bytes.Clone(raw), []byte("}")), `,"`+gvkExtension+`":`...)
	return append(append(out, ext...), '}'), nil
}

// swaggerOf rewrites a decoded OpenAPI 3 schema as OpenAPI 2: references and what
// stands beside them on one level, no defaults, no alternatives.
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
