package compared_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	upstream "k8s.io/api/resource/v1alpha3"
	upstreamv1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/k8s.io/api/resource/v1alpha3"
)

// object is what the types of both sides can do.
type object interface {
	message
	runtime.Object
}

// filler gives values to all fields of API types.
type filler struct {
	n    int // what makes values differ
	size int // of lists and maps
	nils bool
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		p.Time = time.Unix(int64(f.n), 0).UTC()
		return
	case *resource.Quantity:
		*p = *resource.NewQuantity(int64(f.n)<<10, resource.BinarySI)
		return
	case *runtime.RawExtension:
		p.Raw = fmt.Appendf(nil, `{"n":%d}`, f.n)
		return
	case *metav1.FieldsV1:
		p.Raw = []byte(`{"f:spec":{}}`)
		return
	case *metav1.TypeMeta:
		return // no part of a message
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Pointer:
		if !f.nils {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Slice:
		for range f.size {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			f.fill(v.Index(v.Len() - 1))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.size {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("s", f.n*7919%1000)) // maps are not filled in their order
	case reflect.Bool:
		v.SetBool(f.n%2 == 0)
	case reflect.Int64:
		v.SetInt(int64(f.n) * 1e9 * int64(1-2*(f.n%2)))
	}
}

// roots are the kinds of the group, ours and upstream's.
func roots() map[string][2]object {
	return map[string][2]object{
		"DeviceClass": {&v1alpha3.DeviceClass{}, &upstream.DeviceClass{}}, "DeviceClassList": {&v1alpha3.DeviceClassList{}, &upstream.DeviceClassList{}},
		"ResourceClaim": {&v1alpha3.ResourceClaim{}, &upstream.ResourceClaim{}}, "ResourceClaimList": {&v1alpha3.ResourceClaimList{}, &upstream.ResourceClaimList{}},
		"ResourceClaimTemplate": {&v1alpha3.ResourceClaimTemplate{}, &upstream.ResourceClaimTemplate{}}, "ResourceClaimTemplateList": {&v1alpha3.ResourceClaimTemplateList{}, &upstream.ResourceClaimTemplateList{}},
		"ResourceSlice": {&v1alpha3.ResourceSlice{}, &upstream.ResourceSlice{}}, "ResourceSliceList": {&v1alpha3.ResourceSliceList{}, &upstream.ResourceSliceList{}},
	}
}

func TestResourceEqualsUpstream(t *testing.T) {
	for name := range roots() {
		for _, f := range []filler{{size: 0}, {size: 0, nils: true}, {size: 1, nils: true}, {size: 1}, {size: 3}} {
			t.Run(fmt.Sprint(name, f), func(t *testing.T) {
				pair := roots()[name]
				got, want := pair[0], pair[1]
				f.fill(reflect.ValueOf(want).Elem())
				text := asJSON(t, want)
				if err := json.Unmarshal([]byte(text), got); err != nil {
					t.Fatal(err)
				}
				if again := asJSON(t, got); again != text {
					t.Errorf("JSON is %s, upstream %s", again, text)
				}
				compare(t, got, want)
				copied := got.DeepCopyObject().(object)
				if diff := cmp.Diff(got, copied); diff != "" {
					t.Error(diff)
				}
				before := encoded(t, got)
				other := filler{n: 100, size: 1}
				overwrite(&other, reflect.ValueOf(copied).Elem())
				if after := encoded(t, got); !bytes.Equal(before, after) {
					t.Errorf("a change of the copy changed the original into %s", asJSON(t, got))
				}
			})
		}
	}
}

// overwrite changes what a value shares with others: items, entries, and what is pointed to.
func overwrite(f *filler, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				overwrite(f, v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() != reflect.Struct {
			f.fill(v.Elem())
		} else if !v.IsNil() {
			overwrite(f, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(f, v.Index(i))
			if v.Index(i).Kind() != reflect.Struct {
				f.n++
				f.fill(v.Index(i))
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if it.Value().Kind() == reflect.Struct {
				value := reflect.New(it.Value().Type()).Elem()
				value.Set(it.Value())
				overwrite(f, value)
			}
		}
		v.Clear()
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	case reflect.String:
		v.SetString("other")
	}
}

// Fields, their names, their tags and what is said of them are those of upstream, and those of v1beta1
// but for the capacity of a device.
func TestResourceTypes(t *testing.T) {
	seen := map[string]bool{}
	for _, pair := range roots() {
		sameTypes(t, seen, reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1]), "")
	}
	for _, pair := range [][2]any{
		{v1alpha3.DeviceClassList{}, upstreamv1beta1.DeviceClassList{}}, {v1alpha3.ResourceClaimList{}, upstreamv1beta1.ResourceClaimList{}},
		{v1alpha3.ResourceClaimTemplateList{}, upstreamv1beta1.ResourceClaimTemplateList{}}, {v1alpha3.ResourceSliceList{}, upstreamv1beta1.ResourceSliceList{}},
	} {
		sameTypes(t, seen, reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1]), "v1beta1.DeviceCapacity")
	}
	if len(seen) < 2*33 {
		t.Errorf("only %d types were compared: %v", len(seen), seen)
	}
}

func sameTypes(t *testing.T, seen map[string]bool, got, want reflect.Type, but string) {
	t.Helper()
	if want.String() == but && got == reflect.TypeFor[resource.Quantity]() || got == want || seen[got.String()+want.String()] {
		return
	}
	if got.Kind() != want.Kind() || got.Name() != want.Name() {
		t.Errorf("%v is a %v, upstream %v a %v", got, got.Kind(), want, want.Kind())
		return
	}
	switch got.Kind() {
	case reflect.Map:
		sameTypes(t, seen, got.Key(), want.Key(), but)
		fallthrough
	case reflect.Pointer, reflect.Slice:
		sameTypes(t, seen, got.Elem(), want.Elem(), but)
	case reflect.Struct:
		seen[got.String()+want.String()] = true
		type described interface{ SwaggerDoc() map[string]string }
		g, w := reflect.Zero(got).Interface().(described).SwaggerDoc(), reflect.Zero(want).Interface().(described).SwaggerDoc()
		if diff := cmp.Diff(w, g); diff != "" || len(g) == 0 {
			t.Errorf("%v: %s", got, diff)
		}
		if got.NumField() != want.NumField() {
			t.Errorf("%v has %d fields, upstream %d", got, got.NumField(), want.NumField())
			return
		}
		for i := range got.NumField() {
			g, w := got.Field(i), want.Field(i)
			if g.Name != w.Name || g.Tag != w.Tag || g.Anonymous != w.Anonymous {
				t.Errorf("%v: field %s %s, upstream %s %s", got, g.Name, g.Tag, w.Name, w.Tag)
			}
			sameTypes(t, seen, g.Type, w.Type, but)
		}
	}
}
