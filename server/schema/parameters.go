package schema

import (
	"crypto/sha512"
	"encoding/base64"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parameter is a query or path parameter.
type parameter struct {
	name, in, kind, text string
	of                   reflect.Type // the options that it is a field of
}

// options are the parameters of requests, by the types that they are decoded into. Their descriptions come from
// the types. SwaggerDoc is called of each type by itself: through an interface, the linker would keep that of
// all types (docs/design/size.md).
var options = sync.OnceValue(func() map[string][]parameter {
	out := map[string][]parameter{}
	add := func(o any, texts map[string]string) {
		t := reflect.TypeOf(o)
		out[t.Name()] = queryOf(t, texts)
	}
	add(metav1.ListOptions{}, metav1.ListOptions{}.SwaggerDoc())
	add(metav1.GetOptions{}, metav1.GetOptions{}.SwaggerDoc())
	add(metav1.CreateOptions{}, metav1.CreateOptions{}.SwaggerDoc())
	add(metav1.UpdateOptions{}, metav1.UpdateOptions{}.SwaggerDoc())
	add(metav1.PatchOptions{}, metav1.PatchOptions{}.SwaggerDoc())
	add(metav1.DeleteOptions{}, metav1.DeleteOptions{}.SwaggerDoc())
	add(corev1.PodLogOptions{}, corev1.PodLogOptions{}.SwaggerDoc())
	add(corev1.PodExecOptions{}, corev1.PodExecOptions{}.SwaggerDoc())
	add(corev1.PodAttachOptions{}, corev1.PodAttachOptions{}.SwaggerDoc())
	add(corev1.PodPortForwardOptions{}, corev1.PodPortForwardOptions{}.SwaggerDoc())
	add(corev1.PodProxyOptions{}, corev1.PodProxyOptions{}.SwaggerDoc())
	add(corev1.ServiceProxyOptions{}, corev1.ServiceProxyOptions{}.SwaggerDoc())
	add(corev1.NodeProxyOptions{}, corev1.NodeProxyOptions{}.SwaggerDoc())
	return out
})

// queryOf returns the fields of a type that are query parameters, so no structs.
func queryOf(t reflect.Type, texts map[string]string) (out []parameter) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if kind := queryKind(t.Field(i).Type); name != "" && kind != "" {
			out = append(out, parameter{name, "query", kind, texts[name], t})
		}
	}
	return out
}

func queryKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return queryKind(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int32, reflect.Int64:
		return "integer"
	}
	return ""
}

// query returns the parameters of some kinds of options, as the release has them.
func (b *pathBuilder) query(kinds ...string) (out []parameter) {
	for _, kind := range kinds {
		for _, p := range options()[kind] {
			if !b.r.Release.View().Lacks(p.of, p.name) {
				out = append(out, p)
			}
		}
	}
	return out
}

var (
	inPretty    = parameter{"pretty", "query", "string", "If true, the answer is indented for human readers; browsers, curl and wget get it so unless they say false.", nil}
	inNamespace = parameter{"namespace", "path", "string", "the namespace of the object", nil}
	inPath      = parameter{"path", "path", "string", "path to the resource", nil}
)

func inName(kind string) parameter {
	return parameter{"name", "path", "string", "name of the " + kind, nil}
}

// sortParameters puts them in the order of their names, each once.
func sortParameters(list []parameter) []parameter {
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return a.name < b.name || a.name == b.name && a.in < b.in
	})
	return slices.CompactFunc(list, func(a, b parameter) bool { return a.name == b.name && a.in == b.in })
}

// lift takes out of the operations of a path the parameters that all have in common.
func lift(ops []operation) (common []parameter) {
	if len(ops) == 0 {
		return nil
	}
	for _, p := range ops[0].parameters {
		if !slices.ContainsFunc(ops, func(o operation) bool { return !slices.Contains(o.parameters, p) }) {
			common = append(common, p)
		}
	}
	for i := range ops {
		ops[i].parameters = slices.DeleteFunc(slices.Clone(ops[i].parameters), func(p parameter) bool { return slices.Contains(common, p) })
	}
	return common
}

// shared reports whether a parameter is the same in all operations.
func (p parameter) shared() bool { return p.name != "name" }

// key names a shared parameter: different parameters may have the same name.
func (p parameter) key() string {
	sum := sha512.Sum512([]byte(p.in + "\x00" + p.kind + "\x00" + p.text))
	return p.name + "-" + base64.RawURLEncoding.EncodeToString(sum[:6])
}

// sharedParameters collects those that paths of OpenAPI 2 refer to.
type sharedParameters map[string]tree

func (s sharedParameters) render(list []parameter) []tree {
	var out []tree
	for _, p := range list {
		param := p.tree()
		param["type"], param["uniqueItems"] = p.kind, true
		if p.shared() {
			key := p.key()
			s[key] = param
			param = tree{"$ref": "#/parameters/" + key}
		}
		out = append(out, param)
	}
	return out
}

func (p parameter) tree() tree {
	out := tree{"name": p.name, "in": p.in}
	if p.text != "" {
		out["description"] = p.text
	}
	if p.in == "path" {
		out["required"] = true
	}
	return out
}

func parameters3(list []parameter) []tree {
	var out []tree
	for _, p := range list {
		param := p.tree()
		param["schema"] = tree{"type": p.kind, "uniqueItems": true}
		out = append(out, param)
	}
	return out
}
