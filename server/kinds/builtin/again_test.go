package builtin_test

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1alpha1 "k8s.io/api/storage/v1alpha1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/removed"
)

// TestTypesOfOtherVersions: where a version has the Go types of another one, its own types have the same fields with the same tags,
// and each release has the same fields of both.
func TestTypesOfOtherVersions(t *testing.T) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1alpha1.AddToScheme, admissionregistrationv1beta1.AddToScheme, authenticationv1beta1.AddToScheme,
		certificatesv1alpha1.AddToScheme, coordinationv1alpha2.AddToScheme, networkingv1beta1.AddToScheme, resourcev1beta2.AddToScheme,
		storagev1alpha1.AddToScheme, storagev1beta1.AddToScheme,
	} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	compared := 0
	for _, r := range (builtin.Config{}).All() {
		stands := r.GoType()
		if stands == nil || !strings.HasPrefix(stands.PkgPath(), "k8s.io/api/") || path.Base(stands.PkgPath()) == r.Version {
			continue
		}
		compared++
		c := comparison{t, r.GVK(), map[reflect.Type]bool{}}
		obj, err := types.New(r.GVK())
		if err != nil {
			t.Error(err)
			continue
		}
		c.compare(reflect.TypeOf(obj).Elem(), stands)
		if r.NewList == nil {
			continue
		}
		if obj, err = types.New(r.GVK().GroupVersion().WithKind(r.ListKind)); err != nil {
			t.Error(err)
			continue
		}
		c.compare(reflect.TypeOf(obj).Elem(), reflect.TypeOf(r.NewList()).Elem())
	}
	if compared < 17 {
		t.Errorf("%d kinds were compared", compared)
	}
}

type comparison struct {
	*testing.T
	kind schema.GroupVersionKind
	seen map[reflect.Type]bool
}

func (c comparison) compare(own, stands reflect.Type) {
	for own.Kind() == stands.Kind() && (own.Kind() == reflect.Pointer || own.Kind() == reflect.Slice || own.Kind() == reflect.Map) {
		if own.Kind() == reflect.Map {
			c.compare(own.Key(), stands.Key())
		}
		own, stands = own.Elem(), stands.Elem()
	}
	if own == stands || c.seen[own] {
		return
	}
	c.seen[own] = true
	if own.Kind() != stands.Kind() || own.Name() != stands.Name() || removed.PackagePath(stands.PkgPath()) != stands.PkgPath() {
		c.Errorf("%v: %v stands for %v", c.kind, stands, own)
		return
	}
	for _, v := range release.All() {
		if !v.Introduced(c.kind) {
			continue
		}
		a, b := release.TypeNamed(own.PkgPath(), own.Name()), release.TypeOf(stands, v)
		if a.In(v) != b.In(v) || own.Kind() != reflect.Struct && !slices.Equal(a.Lacks(v), b.Lacks(v)) {
			c.Errorf("%v: release %v has %v %t without %q, and %v %t without %q", c.kind, v, own, a.In(v), a.Lacks(v), stands, b.In(v), b.Lacks(v))
		}
		for i := range fields(own) {
			field, _, _ := strings.Cut(own.Field(i).Tag.Get("json"), ",")
			if a.Has(v, field) != b.Has(v, field) {
				c.Errorf("%v: release %v has %s of %v %t, and of %v %t", c.kind, v, field, own, a.Has(v, field), stands, b.Has(v, field))
			}
		}
	}
	if fields(own) != fields(stands) {
		c.Fatalf("%v: %v has %d fields, %v has %d", c.kind, own, fields(own), stands, fields(stands))
	}
	for i := range fields(own) {
		f, g := own.Field(i), stands.Field(i)
		if f.Name != g.Name || f.Tag != g.Tag {
			c.Errorf("%v: %s `%s` of %v is %s `%s` of %v", c.kind, f.Name, f.Tag, own, g.Name, g.Tag, stands)
		}
		c.compare(f.Type, g.Type)
	}
}

// fields counts the fields of a type.
func fields(t reflect.Type) int {
	if t.Kind() == reflect.Struct {
		return t.NumField()
	}
	return 0
}
