// Package json is the JSON wire form.
//
// It decodes like sigs.k8s.io/json, with the same errors and problems, for a type that has the fields of the
// codec's view; it encodes byte for byte like encoding/json, except for nulls that the view wants. Clean
// input takes a fast path, whose equality is tested by fuzzing; any other input is decoded again by the exact
// decoder.
package json

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	exact "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/codecs/view"
)

// Codec implements codecs.Codec for application/json. The zero value uses the standard implementation,
// without counting; New makes others. Copies share their counters.
type Codec struct{ state *state }

var (
	_ codecs.Codec = Codec{}
	_ codecs.Quick = Codec{}
)

// MediaType returns application/json.
func (Codec) MediaType() string { return codecs.JSON }

// Weigh implements codecs.Codec.
func (Codec) Weigh(data []byte, obj runtime.Object) (int64, error) {
	t := reflect.TypeOf(obj)
	return budget.Weight(budget.JSON(data, budget.Small/budget.Largest(t)), t), budget.Nested(data, t)
}

// Kind reads kind and apiVersion. Unlike all other fields these two match in any case.
func (c Codec) Kind(data []byte) (schema.GroupVersionKind, error) {
	if c.fastPathEnabled() {
		if gvk, ok := scanKind(data); ok {
			return gvk, nil
		}
	}
	// The shape of this struct is part of the error text.
	findKind := struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}{}
	if err := stdjson.Unmarshal(data, &findKind); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("couldn't get version/kind; json parse error: %v", err)
	}
	gv, err := schema.ParseGroupVersion(findKind.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return gv.WithKind(findKind.Kind), nil
}

// Decode reads data into a typed object or a runtime.Unstructured, which must be
// empty but for its kind and API version. Strings of the object keep a copy of
// data alive.
func (c Codec) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	if !c.fastPathEnabled() {
		c.count(Decode, Standard)
		return c.decodeExact(data, obj, s)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if c.decodeOwn(string(data), obj) {
		return nil, nil
	}
	if _, ok := obj.(runtime.Unstructured); !ok {
		reflect.ValueOf(obj).Elem().SetZero()
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return c.decodeExact(data, obj, s)
}

// DecodeClean is Decode for input that has neither problems nor errors, and fails
// for any other, for some that is rare, and if Settings disable the fast path.
// Then obj is half filled. Strings of obj are parts of data, which must not change any more.
func (c Codec) DecodeClean(data []byte, obj runtime.Object) bool {
	return c.fastPathEnabled() && c.decodeOwn(unsafe.String(unsafe.SliceData(data), len(data)), obj)
}

func (c Codec) decodeOwn(text string, obj runtime.Object) bool {
	return c.try(Decode, reflect.TypeOf(obj), func() bool {
		if u, ok := obj.(runtime.Unstructured); ok {
			tree, ok := decodeTree(text)
			if ok {
				u.SetUnstructuredContent(tree)
			}
			return ok
		}
		v := reflect.ValueOf(obj)
		if v.Kind() != reflect.Pointer || v.Type().Elem().Kind() != reflect.Struct || !c.plans().decodeClean(text, v) {
			return false
		}
		named, ok := obj.GetObjectKind().(*metav1.TypeMeta)
		return !ok || strings.Count(named.APIVersion, "/") < 2 // else it is no version
	}) == Fast
}

// Unmarshal reads data into any value, empty or not, with the rules of Decode.
func (c Codec) Unmarshal(data []byte, into any, s codecs.Strictness) ([]string, error) {
	v := reflect.ValueOf(into)
	tree, isTree := into.(*map[string]any)
	switch {
	case !c.fastPathEnabled() || v.Kind() != reflect.Pointer || v.IsNil() || !v.Elem().IsZero():
	case isTree:
		if c.try(Decode, v.Type(), func() (ok bool) {
			*tree, ok = decodeTree(string(data))
			return ok
		}) == Fast {
			return nil, nil
		}
		*tree = nil
		return c.decodeExact(data, into, s)
	case v.Type().Elem().Kind() == reflect.Struct:
		if c.try(Decode, v.Type(), func() bool { return c.plans().decodeClean(string(data), v) }) == Fast {
			return nil, nil
		}
		v.Elem().SetZero()
		return c.decodeExact(data, into, s)
	}
	c.count(Decode, Standard)
	return c.decodeExact(data, into, s)
}

// decodeExact decodes by the standard packages.
func (c Codec) decodeExact(data []byte, into any, s codecs.Strictness) ([]string, error) {
	u, isUnstructured := into.(runtime.Unstructured)
	if isUnstructured {
		// Its own unmarshaler would hide the problems, and refuse an absent kind.
		content := map[string]any{}
		problems, err := c.decodeExact(data, &content, s)
		u.SetUnstructuredContent(content)
		return problems, err
	}
	data = c.plans().marked(data, reflect.TypeOf(into))
	if err := quantities.CheckJSON(data, reflect.TypeOf(into)); err != nil {
		return nil, err
	}
	if s == codecs.Ignore {
		return nil, c.mistyped(exact.UnmarshalCaseSensitivePreserveInts(data, into), reflect.TypeOf(into), data)
	}
	strict, err := exact.UnmarshalStrict(data, into)
	if err != nil {
		return nil, c.mistyped(err, reflect.TypeOf(into), data)
	}
	var problems []string
	for _, e := range strict {
		problems = append(problems, view.Unmark(e.Error()))
	}
	return problems, nil
}

// Encode appends obj as encoding/json writes it, with HTML characters escaped and
// no trailing newline.
func (c Codec) Encode(dst []byte, obj runtime.Object) ([]byte, error) { return c.Append(dst, obj) }

// Append appends any value with the rules of Encode.
func (c Codec) Append(dst []byte, v any) ([]byte, error) {
	p := reflect.ValueOf(v)
	if tree, ok := treeOf(v); ok && c.fastPathEnabled() {
		out := dst
		if c.try(Encode, p.Type(), func() (ok bool) {
			var err error
			out, err = appendTree(dst, tree)
			return err == nil
		}) == Fast {
			return out, nil
		}
		return c.appendStandard(dst, v)
	}
	if !c.fastPathEnabled() || p.Kind() != reflect.Pointer || p.IsNil() || p.Type().Elem().Kind() != reflect.Struct {
		c.count(Encode, Standard)
		return c.appendStandard(dst, v)
	}
	out := dst
	if c.try(Encode, p.Type(), func() (ok bool) {
		var err error
		out, err = c.plans().appendStruct(dst, p)
		return err == nil
	}) == Fast {
		return out, nil
	}
	return c.appendStandard(dst, v)
}
