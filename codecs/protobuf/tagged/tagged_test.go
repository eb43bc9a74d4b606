package tagged_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/codecs/sample"
)

// mirrors makes types that have the fields of others and no methods.
type mirrors map[reflect.Type]reflect.Type

// of returns false for a type that contains itself, or one whose message does not follow its tags.
func (m mirrors) of(t reflect.Type, within []reflect.Type) (reflect.Type, bool) {
	if own, ok := m[t]; ok {
		return own, own != nil
	}
	if slices.Contains(within, t) {
		return nil, false
	}
	made, ok := m.made(t, append(slices.Clip(within), t))
	if !ok {
		made = nil
	}
	m[t] = made
	return made, ok
}

func (m mirrors) made(t reflect.Type, within []reflect.Type) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Struct:
		writesItself := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
		fields := make([]reflect.StructField, t.NumField())
		for i := range fields {
			f := t.Field(i)
			if f.Type == reflect.TypeFor[metav1.TypeMeta]() {
				fields[i] = f
				continue
			}
			if writesItself || !f.IsExported() || f.Tag.Get("protobuf") == "" {
				return t, f.Tag.Get("protobuf") != "" || writesItself // has methods of its own, as times and quantities do
			}
			of, ok := m.of(f.Type, within)
			if !ok {
				return nil, false
			}
			fields[i] = reflect.StructField{Name: f.Name, Type: of, Tag: f.Tag}
		}
		return reflect.StructOf(fields), true
	case reflect.Pointer:
		of, ok := m.of(t.Elem(), within)
		return reflect.PointerTo(cmpOr(of, t.Elem())), ok
	case reflect.Slice:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[tagged.Generated]()) {
			return t, true // a message with the elements
		}
		of, ok := m.of(t.Elem(), within)
		return reflect.SliceOf(cmpOr(of, t.Elem())), ok
	case reflect.Map:
		of, ok := m.of(t.Elem(), within)
		return reflect.MapOf(t.Key(), cmpOr(of, t.Elem())), ok
	}
	return t, true
}

func cmpOr(a, b reflect.Type) reflect.Type {
	if a != nil {
		return a
	}
	return b
}

// pair is a kind with generated methods, and its mirror.
type pair struct {
	gvk       schema.GroupVersionKind
	generated reflect.Type
	mirror    reflect.Type
}

func pairs(t testing.TB) []pair {
	scheme, m := sample.Scheme(), mirrors{}
	var out []pair
	var without []string
	for _, gvk := range sample.Kinds(scheme) {
		obj, err := scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		typ := reflect.TypeOf(obj).Elem()
		if _, ok := obj.(tagged.Generated); !ok || out != nil && slices.ContainsFunc(out, func(p pair) bool { return p.generated == typ }) {
			continue
		}
		if mirror, ok := m.of(typ, nil); ok && mirror != typ {
			if !tagged.Supports(reflect.PointerTo(mirror)) {
				t.Fatalf("%v is not supported", gvk)
			}
			out = append(out, pair{gvk, typ, mirror})
			continue
		}
		without = append(without, typ.String())
	}
	slices.Sort(without)
	for _, w := range slices.Compact(without) {
		if !strings.HasPrefix(w, "v1.CustomResourceDefinition") && !strings.HasPrefix(w, "v1beta1.JSONSchema") {
			t.Errorf("%s has no mirror", w)
		}
	}
	if len(out) < 300 {
		t.Fatalf("only %d kinds", len(out))
	}
	return out
}

// alike holds a message, and the errors that it is refused with, to the generated methods.
func alike(t *testing.T, p pair, data []byte) {
	t.Helper()
	want, got := reflect.New(p.generated), reflect.New(p.mirror)
	wantErr, gotErr := want.Interface().(tagged.Generated).Unmarshal(data), tagged.Unmarshal(data, got.Interface())
	if gotErr != nil {
		if wantErr == nil && !odd(data) && !strings.Contains(gotErr.Error(), "in an entry of a map") {
			t.Fatalf("%v: %x is refused: %v", p.gvk, data, gotErr)
		}
		return
	}
	if wantErr != nil {
		t.Fatalf("%v: %x is read; the generated methods say %v", p.gvk, data, wantErr)
	}
	theirs, err := tagged.Append(nil, want.Interface())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := tagged.Append([]byte("before"), got.Interface())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ours[len("before"):], theirs) {
		t.Fatalf("%v: %x\n is %x\nwant %x", p.gvk, data, ours[len("before"):], theirs)
	}
	if at := differs(want.Elem(), got.Elem()); at != "" {
		t.Fatalf("%v: %x: %s differs: %+v, %+v", p.gvk, data, at, want, got)
	}
}

// differs names the field in which a value and that of a mirror differ.
func differs(a, b reflect.Value) string {
	if a.Type() == b.Type() {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return a.Type().String()
		}
		return ""
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if at := differs(a.Field(i), b.Field(i)); at != "" {
				return a.Type().Field(i).Name + "." + at
			}
		}
	case reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			return "nil"
		}
		if !a.IsNil() {
			return differs(a.Elem(), b.Elem())
		}
	case reflect.Slice:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return "length"
		}
		for i := range a.Len() {
			if at := differs(a.Index(i), b.Index(i)); at != "" {
				return at
			}
		}
	case reflect.Map:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return "length"
		}
		for _, k := range a.MapKeys() {
			if v := b.MapIndex(k); !v.IsValid() || differs(a.MapIndex(k), v) != "" {
				return k.String()
			}
		}
	default:
		return "kind"
	}
	return ""
}

// odd reports whether data may hold forms that this package refuses and generated methods ignore: groups,
// numbers of more than 64 bits, numbers of fields beyond the largest one, and entries of maps that are longer
// than their length field.
func odd(data []byte) bool {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 > 1<<29-1 || tag&7 == 3 || tag&7 == 4 {
			return true
		}
		data = data[n:]
		size := 0
		switch tag & 7 {
		case 0:
			if _, size = binary.Uvarint(data); size <= 0 {
				return true
			}
		case 1, 5:
			size = 8 - int(tag&4)
		case 2:
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) || odd(data[n:n+int(length)]) {
				return true
			}
			size = n + int(length)
		}
		if size > len(data) {
			return true
		}
		data = data[size:]
	}
	return false
}

// TestEqualsGenerated: random objects of every kind are read and written as by the generated methods, and damaged
// messages are refused where those refuse them.
func TestEqualsGenerated(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	for _, p := range pairs(t) {
		alike(t, p, nil)
		for range 8 {
			obj := reflect.New(p.generated)
			sample.Fill(r, obj.Interface())
			data, err := tagged.Append(nil, obj.Interface())
			if err != nil {
				continue // there is no message of it
			}
			alike(t, p, data)
			for range 12 {
				alike(t, p, damaged(r, data))
			}
		}
	}
}

// TestPackedNumbers: repeated numbers in a single field are read as by the generated methods.
func TestPackedNumbers(t *testing.T) {
	all := pairs(t)
	pod := all[slices.IndexFunc(all, func(p pair) bool { return p.generated == reflect.TypeFor[corev1.Pod]() })]
	in := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	for _, numbers := range [][]byte{{}, {1, 0x80, 1, 3}, protowire.AppendVarint(nil, 1<<64-1), {1, 0x80}} {
		groups := append(in(4, numbers), in(4, []byte{7})...) // spec.securityContext.supplementalGroups
		groups = protowire.AppendVarint(protowire.AppendTag(groups, 4, protowire.VarintType), 9)
		alike(t, pod, in(2, in(14, groups)))
	}
}

// damaged cuts a message, changes bytes of it, or has a part of it twice.
func damaged(r *rand.Rand, data []byte) []byte {
	if len(data) == 0 {
		return []byte{byte(r.Uint32())}
	}
	out, i, j := bytes.Clone(data), r.Intn(len(data)), r.Intn(len(data))
	switch r.Intn(4) {
	case 0:
		return out[:i]
	case 1:
		out[i] ^= 1 << r.Intn(8)
	case 2:
		out[i] = byte(r.Uint32())
	default:
		return slices.Concat(out, out[min(i, j):max(i, j)])
	}
	return out
}

// FuzzEqualsGenerated: any client's data is read as by the generated methods, or refused.
func FuzzEqualsGenerated(f *testing.F) {
	all := pairs(f)
	r := rand.New(rand.NewSource(1))
	for i, p := range all {
		obj := reflect.New(p.generated)
		sample.Fill(r, obj.Interface())
		if data, err := tagged.Append(nil, obj.Interface()); err == nil {
			f.Add(uint16(i), data)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) { alike(t, all[int(kind)%len(all)], data) })
}

// TestSupports: a type that has no tags, or contains itself, has no message.
func TestSupports(t *testing.T) {
	type node struct {
		Next *node `protobuf:"bytes,1,opt,name=next"`
	}
	type embedding struct { // seems to have the methods of the type that it embeds
		metav1.ObjectMeta `protobuf:"bytes,1,opt,name=metadata"`
		Name              string `protobuf:"bytes,2,opt,name=name"`
	}
	for _, c := range []struct {
		of   any
		want bool
	}{
		{&corev1.Pod{}, true}, {corev1.Pod{}, false}, {&metav1.Table{}, false}, {&node{}, false}, {&struct{ A string }{}, false}, {&embedding{}, true}, {new(int), false},
	} {
		if got := tagged.Supports(reflect.TypeOf(c.of)); got != c.want {
			t.Errorf("%T: %v", c.of, got)
		}
		if _, err := tagged.Append(nil, c.of); (err == nil) != c.want {
			t.Errorf("%T: %v", c.of, err)
		}
		if err := tagged.Unmarshal(nil, c.of); (err == nil) != c.want {
			t.Errorf("%T: %v", c.of, err)
		}
	}
	out := &embedding{}
	data, err := tagged.Append(nil, &embedding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Name: "b"})
	if err == nil {
		err = tagged.Unmarshal(data, out)
	}
	if err != nil || out.Name != "b" || out.ObjectMeta.Name != "a" {
		t.Errorf("%v, %v", out, err)
	}
}

func BenchmarkPod(b *testing.B) {
	r := rand.New(rand.NewSource(5))
	var data []byte
	for range 200 {
		pod := &corev1.Pod{}
		sample.Fill(r, pod)
		if made, err := tagged.Append(nil, pod); err == nil && len(made) > len(data) && len(made) < 6000 {
			data = made
		}
	}
	mirror, _ := mirrors{}.of(reflect.TypeFor[corev1.Pod](), nil)
	for name, of := range map[string]reflect.Type{"generated": reflect.TypeFor[corev1.Pod](), "tagged": mirror} {
		b.Run("read/"+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := tagged.Unmarshal(data, reflect.New(of).Interface()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
