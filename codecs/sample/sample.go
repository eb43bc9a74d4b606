// Package sample makes random API objects and damaged JSON for differential tests
// of the wire forms. Only tests import it. The same seed gives the same samples.
package sample

import (
	"math"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	aggregationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Scheme returns a scheme of all built-in kinds with a stable version, including lists and options.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, aggregationv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// Kinds lists the kinds of a scheme in a stable order.
func Kinds(s *runtime.Scheme) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for gvk := range s.AllKnownTypes() {
		if gvk.Version != runtime.APIVersionInternal {
			all = append(all, gvk)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// New returns an empty object of a kind of a scheme.
func New(s *runtime.Scheme, gvk schema.GroupVersionKind) runtime.Object {
	obj, err := s.New(gvk)
	if err != nil {
		panic(err)
	}
	return obj
}

// Fill sets every field of the value behind obj at random, a part of them to nothing.
func Fill(r *rand.Rand, obj any) {
	(&filler{r}).value(reflect.ValueOf(obj).Elem(), 0)
}

type filler struct{ *rand.Rand }

var quantities = []string{"0", "1", "500m", "128Mi", "1.5Gi", "1e3", "12E", "-5", "0.1", "3k", "100000000000000000000", "2.5"}

func (f *filler) value(v reflect.Value, depth int) {
	if depth > 0 && f.Intn(100) < 25+7*depth {
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.NewTime(time.Unix(f.Int63n(4e9), 0))
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.Unix(f.Int63n(4e9), f.Int63n(1e6)*1e3))
		return
	case *metav1.Duration:
		p.Duration = time.Duration(f.Int63n(1e15))
		return
	case *resource.Quantity:
		*p = resource.MustParse(quantities[f.Intn(len(quantities))])
		_ = p.String() // keeps the spelling, as decoding does
		return
	case *intstr.IntOrString:
		*p = intstr.FromString(f.text())
		if f.Intn(2) == 0 {
			*p = intstr.FromInt32(int32(f.Uint32()))
		}
		return
	case *metav1.FieldsV1:
		p.Raw = []byte(`{"f:a":{".":{},"k:{\"b\":1}":{}}}`)
		return
	case *runtime.RawExtension:
		p.Raw = []byte(`{"kind":"X","a":[1,2.5,null,"<>&"]}`)
		return
	case *apiextensionsv1.JSON:
		p.Raw = []byte([]string{`{"a":1}`, `"x"`, `5`, `[null]`}[f.Intn(4)])
		return
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		p.Allows = f.Intn(2) == 0
		return
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		p.Schema = &apiextensionsv1.JSONSchemaProps{Type: f.text()}
		return
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		p.Property = []string{f.text()}
		return
	}
	f.kind(v, depth)
}

func (f *filler) kind(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n := int64(f.Uint64()) >> f.Intn(64)
		if v.Kind() == reflect.Int32 {
			n = int64(int32(n))
		}
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(uint8(f.Uint32())))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -1.5, 1e21, 1e-7, 123456789, math.Pi}[f.Intn(7)])
	case reflect.String:
		v.SetString(f.text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if name := v.Type().Elem().Name(); name == "Time" || name == "MicroTime" || name == "FieldsV1" {
			depth = -1 // JSON decodes the zero value as nil
		}
		f.value(v.Elem(), depth+1)
	case reflect.Slice:
		n := f.Intn(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.value(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.Intn(3) {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.value(key, 0)
			f.value(elem, depth+1)
			v.SetMapIndex(key, elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				f.value(v.Field(i), depth+1)
			}
		}
	}
}

var texts = []string{"", "a", "web", "kube-system", "with \"quotes\" and \\", "<b>&amp;</b>", "tab\tnewline\n\u0000\u007f",
	"é漢字🙂", "\u2028\u2029", "null", "true", "12", "1e3", "0x1F", "yes", "~", "key: value", "- item", "#c", " lead", "2001-01-01", "1_000", "longer text with spaces in it"}

func (f *filler) text() string { return texts[f.Intn(len(texts))] }

// Damage changes one place of a JSON text at random. Some results are still
// well-formed: other types, nulls, unknown, duplicate and differently cased names.
func Damage(r *rand.Rand, data []byte) []byte {
	at := r.Intn(len(data) + 1)
	find := func(c string) int {
		if i := strings.Index(string(data[at:]), c); i >= 0 {
			return at + i
		}
		return -1
	}
	splice := func(from, to int, with string) []byte {
		return slices.Concat(data[:from:from], []byte(with), data[to:])
	}
	values := []string{`null`, `5`, `-0`, `1.0`, `1e2`, `99999999999`, `9223372036854775808`, `"x"`, `""`, `true`, `[]`, `{}`, `[null]`, `{"a":null}`,
		`[{"a":1,"a":2}]`, `"\ud800"`, "\"\xff\"", `"A\u0041\/\b"`, `"2026-11-21T01:13:39Z"`, `"2026-11-21T01:13:39.123456Z"`, `"AQI="`, `"A\nQI="`, `01`, `+1`, `nul`, `"a`, "\"\t\""}
	value := values[r.Intn(len(values))]
	switch r.Intn(10) {
	case 0: // another value
		if i := find(":"); i >= 0 {
			if j := strings.IndexAny(string(data[i:]), ",}]"); j > 0 {
				return splice(i+1, i+j, value)
			}
		}
	case 1: // a value put before the next one, as a member with an odd name
		if i := find("{"); i >= 0 {
			names := []string{`"zzz"`, `"kind"`, `"Kind"`, `"metadata"`, `"Metadata"`, `"name"`, `"spec"`, `"k\u0069nd"`, "\"\xff\"", `""`, `"items"`, `"status"`, `"data"`}
			return splice(i+1, i+1, names[r.Intn(len(names))]+":"+value+",")
		}
	case 2: // a name in another case
		if i := find(`,"`); i >= 0 && i+2 < len(data) {
			return splice(i+2, i+3, strings.ToUpper(string(data[i+2:i+3])))
		}
	case 3: // white space
		if i := find(","); i >= 0 {
			return splice(i, i, " \t\r\n")
		}
	case 4: // the end is missing
		return slices.Clone(data[:at])
	case 5: // something after the end
		return append(slices.Clone(data), []string{" ", "x", "{}", "\n"}[r.Intn(4)]...)
	case 6: // any byte
		if at < len(data) {
			return splice(at, at+1, string([]byte{byte(r.Intn(256))}))
		}
	case 7: // a repeated member
		if i := find(`"`); i >= 0 {
			if j := strings.IndexByte(string(data[i:]), ','); j > 0 {
				return splice(i, i, string(data[i:i+j+1]))
			}
		}
	case 8: // an array element more
		if i := find("["); i >= 0 {
			return splice(i+1, i+1, value+",")
		}
	case 9: // a whole new value
		return []byte(value)
	}
	return slices.Clone(data)
}
