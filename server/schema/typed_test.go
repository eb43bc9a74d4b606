package schema_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

// The merge types of client-go were generated from a stock server's own document.
func TestMergeTypesEqualClientGo(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	schemas := schema.New(catalogue)
	oracle := applyconfigurations.NewTypeConverter(scheme.Scheme)
	compared := 0
	for _, r := range catalogue.All() {
		if r.New == nil || !scheme.Scheme.Recognizes(r.GVK()) {
			continue
		}
		obj := r.New()
		obj.GetObjectKind().SetGroupVersionKind(r.GVK())
		want, err := oracle.ObjectToTyped(obj)
		if err != nil || want.TypeRef().NamedType == nil || strings.HasPrefix(*want.TypeRef().NamedType, "__untyped") {
			continue // kinds that cannot be applied
		}
		got, err := schemas.Converter().ObjectToTyped(obj)
		if err != nil {
			t.Errorf("%v: %v", r.GVK(), err)
			continue
		}
		compared++
		c := comparer{t: t, got: got.Schema(), want: want.Schema(), seen: map[string]bool{}}
		c.ref(r.Kind, got.TypeRef(), want.TypeRef())
	}
	if compared < 40 {
		t.Fatalf("compared only %d kinds", compared)
	}
}

type comparer struct {
	t         *testing.T
	got, want *smd.Schema
	seen      map[string]bool
}

func (c *comparer) ref(path string, got, want smd.TypeRef) {
	if want.NamedType != nil {
		key := fmt.Sprint(*want.NamedType, want.ElementRelationship)
		if c.seen[key] {
			return
		}
		c.seen[key] = true
	}
	g, ok := c.got.Resolve(got)
	w, ok2 := c.want.Resolve(want)
	if !ok || !ok2 {
		c.t.Errorf("%s: resolved %v, client-go %v", path, ok, ok2)
		return
	}
	if g.Scalar != nil && w.Scalar != nil && *g.Scalar != *w.Scalar || (g.Scalar == nil) != (w.Scalar == nil) ||
		(g.List == nil) != (w.List == nil) || (g.Map == nil) != (w.Map == nil) {
		c.t.Errorf("%s: got scalar %v list %v map %v, client-go %v %v %v", path, name(g.Scalar), g.List != nil, g.Map != nil, name(w.Scalar), w.List != nil, w.Map != nil)
		return
	}
	if g.List != nil {
		keys := slices.Sorted(slices.Values(w.List.Keys))
		if g.List.ElementRelationship != w.List.ElementRelationship || !slices.Equal(g.List.Keys, keys) {
			c.t.Errorf("%s: got list %v %v, client-go %v %v", path, g.List.ElementRelationship, g.List.Keys, w.List.ElementRelationship, keys)
		}
		c.ref(path+"[]", g.List.ElementType, w.List.ElementType)
	}
	if g.Map != nil {
		c.structure(path, g.Map, w.Map)
	}
}

func (c *comparer) structure(path string, got, want *smd.Map) {
	if (got.ElementRelationship == smd.Atomic) != (want.ElementRelationship == smd.Atomic) {
		c.t.Errorf("%s: got map %q, client-go %q", path, got.ElementRelationship, want.ElementRelationship)
	}
	if (got.ElementType != smd.TypeRef{}) && (want.ElementType != smd.TypeRef{}) {
		c.ref(path+"{}", got.ElementType, want.ElementType)
	}
	names := map[string]bool{}
	for _, f := range want.Fields {
		names[f.Name] = true
		g, ok := got.FindField(f.Name)
		if !ok {
			if !lackedNames()[f.Name] {
				c.t.Errorf("%s.%s is missing", path, f.Name)
			}
			continue
		}
		if f.Default != nil && !reflect.DeepEqual(f.Default, map[any]any{}) && fmt.Sprint(f.Default) != "map[]" && fmt.Sprint(g.Default) != fmt.Sprint(f.Default) && !laterDefaults[path+"."+f.Name] {
			c.t.Errorf("%s.%s: default %v, client-go %v", path, f.Name, g.Default, f.Default)
		}
		c.ref(path+"."+f.Name, g.Type, f.Type)
	}
	for _, f := range got.Fields {
		if !names[f.Name] {
			c.t.Errorf("%s.%s is not in client-go", path, f.Name)
		}
	}
}

// laterDefaults are the defaults that the types of newer releases declare.
var laterDefaults = map[string]bool{"ReplicationController.spec.minReadySeconds": true, "ReplicationController.spec.replicas": true}

// lackedNames are the fields of any built-in kind that came after the release.
var lackedNames = sync.OnceValue(func() map[string]bool {
	names, seen := map[string]bool{}, map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for _, f := range release.Default.View().Fields(t) {
			if f.Lacked {
				names[f.Name] = true
			} else {
				walk(f.Type)
			}
		}
	}
	for _, r := range builtin.Resources() {
		if r.HasGoType() {
			walk(r.GoType())
		}
	}
	return names
})

func name(s *smd.Scalar) string {
	if s == nil {
		return ""
	}
	return string(*s)
}
