package protobuf_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	stdjson "encoding/json"
	"errors"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	stock "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/framer"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/codecs/view"
)

// TestEqualsStock holds every kind against the serializer of apimachinery, made
// from the object and made from its JSON.
func TestEqualsStock(t *testing.T) {
	scheme := sample.Scheme()
	reference := stock.NewSerializer(scheme, scheme)
	r := rand.New(rand.NewSource(1))
	covered := 0
	for _, gvk := range sample.Kinds(scheme) {
		newObject := func() runtime.Object { return sample.New(scheme, gvk) }
		obj := newObject()
		sample.Fill(r, obj)
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		var want bytes.Buffer
		if err := reference.Encode(obj, &want); err != nil {
			if _, err := (protobuf.Codec{}).Encode(nil, obj); err == nil {
				t.Errorf("%v: encoded, but a stock serializer refuses it", gvk)
			}
			continue
		}
		covered++
		got, err := protobuf.Codec{}.Encode([]byte("x"), obj)
		if err != nil || !bytes.Equal(got[1:], want.Bytes()) {
			t.Fatalf("%v: %v\n got %x\nwant %x", gvk, err, got[1:], want.Bytes())
		}
		text, err := stdjson.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := protobuf.Codec{}.FromJSON(newObject, text)
		if err != nil {
			t.Fatalf("%v: %v", gvk, err)
		}
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		enveloped := protobuf.Codec{}.AppendObject(nil, apiVersion, kind, raw)
		if len(enveloped) != protobuf.EnvelopeSize(apiVersion, kind, len(raw)) {
			t.Fatalf("%v: size of the envelope", gvk)
		}
		// The two forms differ only in nil and empty.
		again, decoded := newObject(), newObject()
		if _, err := (protobuf.Codec{}).Decode(enveloped, again, codecs.Strict); err != nil {
			t.Fatalf("%v: %v", gvk, err)
		}
		if _, _, err := reference.Decode(enveloped, nil, decoded); err != nil || !reflect.DeepEqual(again, decoded) {
			t.Fatalf("%v: %v\n got %v\nwant %v", gvk, err, again, decoded)
		}
		if found, err := (protobuf.Codec{}).Kind(enveloped); err != nil || found != gvk {
			t.Fatalf("%v: %v, %v", gvk, found, err)
		}
	}
	if covered < 200 {
		t.Errorf("only %d kinds covered", covered)
	}
}

func pods(n int) []corev1.Pod {
	r := rand.New(rand.NewSource(2))
	out := make([]corev1.Pod, n)
	for i := range out {
		sample.Fill(r, &out[i])
		out[i].TypeMeta = metav1.TypeMeta{}
	}
	return out
}

func TestList(t *testing.T) {
	scheme := sample.Scheme()
	for _, n := range []int{0, 1, 3, 40} {
		remaining := int64(7)
		list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "abc", RemainingItemCount: &remaining}, Items: pods(n)}
		var want bytes.Buffer
		if err := stock.NewSerializer(scheme, scheme).Encode(list, &want); err != nil {
			t.Fatal(err)
		}
		var raws [][]byte
		size := 0
		for i := range list.Items {
			raw, err := protobuf.Marshal(&list.Items[i])
			if err != nil {
				t.Fatal(err)
			}
			raws = append(raws, raw)
			size += protobuf.Codec{}.ItemSize(len(raw))
		}
		got, err := protobuf.Codec{}.AppendListHead(nil, &codecs.List{APIVersion: "v1", Kind: "PodList", Meta: &list.ListMeta, Size: size})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range raws {
			got = append(protobuf.Codec{}.AppendItemHead(got, false, len(raw)), raw...)
		}
		if got = (protobuf.Codec{}).AppendListTail(got, nil); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%d items differ", n)
		}
	}
}

func TestEvent(t *testing.T) {
	scheme := sample.Scheme()
	for i, pod := range pods(5) {
		pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		var object, event, want bytes.Buffer
		if err := stock.NewSerializer(scheme, scheme).Encode(&pod, &object); err != nil {
			t.Fatal(err)
		}
		watchEvent := &metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: object.Bytes()}}
		if err := stock.NewRawSerializer(scheme, scheme).Encode(watchEvent, &event); err != nil {
			t.Fatal(err)
		}
		if _, err := framer.NewLengthDelimitedFrameWriter(&want).Write(event.Bytes()); err != nil {
			t.Fatal(err)
		}
		raw, err := protobuf.Marshal(&pod)
		if err != nil {
			t.Fatal(err)
		}
		if got := (protobuf.Codec{}).AppendEvent(nil, "MODIFIED", "v1", "Pod", raw); !bytes.Equal(got, want.Bytes()) || cap(got) != len(got) {
			t.Fatalf("%d: %x\nwant %x", i, got, want.Bytes())
		}
	}
}

func TestPartial(t *testing.T) {
	for i, pod := range pods(20) {
		want, err := protobuf.Marshal(&metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := protobuf.Marshal(&pod)
		if err != nil {
			t.Fatal(err)
		}
		if got := protobuf.Partial(raw); !bytes.Equal(got, want) {
			t.Fatalf("%d: %x\nwant %x", i, got, want)
		}
		text, err := stdjson.Marshal(&pod)
		if err != nil {
			t.Fatal(err)
		}
		got, err := protobuf.Codec{}.PartialFromJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		var a, b metav1.PartialObjectMetadata
		if err := errors.Join(a.Unmarshal(got), b.Unmarshal(want)); err != nil {
			t.Fatal(err)
		}
		x, errX := stdjson.Marshal(a)
		y, errY := stdjson.Marshal(b)
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Fatalf("%d: %s\nwant %s", i, x, y)
		}
	}
	for _, bad := range []string{"", "\x0a", "\x0a\x05ab", "\x12\x00", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if got := protobuf.Partial([]byte(bad)); got != nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func TestReadBody(t *testing.T) {
	want := codecs.Expected{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Known: func(schema.GroupVersionKind) (runtime.Object, bool) { return nil, true }}
	unrecognized := "the object provided is unrecognized (must be of type ConfigMap): "
	for _, tc := range []struct{ body, name, err string }{
		{body: "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhUKCwoBcFoGCgFhEgFiEgYKAWsSAXY=", name: "p"},
		{body: "azhzAAoECgASABIFCgMKAXI=", name: "r"},
		{body: "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhUKAwoBdZoGDXVua25vd24gZmllbGQ=", name: "u"},
		{body: "azhzAQoPCgJ2MRIJQ29uZmlnTWFwEgUKAwoBdA==", err: unrecognized + "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6b3873010a0f0a0276311209436f6e6669674d617012050a030a0174)"},
		{body: "", err: unrecognized + "empty data (<empty>)"},
		{body: "azhzAA==", err: unrecognized + "empty body (6b387300)"},
		{body: "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEgMK/wE=", err: `ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF`},
		{body: "azhzAAoMCgJ2MRIGU2VjcmV0EgUKAwoBcQ==", err: `Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion`},
	} {
		data, err := base64.StdEncoding.DecodeString(tc.body)
		if err != nil {
			t.Fatal(err)
		}
		obj := &corev1.ConfigMap{}
		_, _, err = codecs.ReadBody(protobuf.Codec{}, data, want, obj, codecs.Strict)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.err || obj.Name != tc.name {
			t.Errorf("%s: %q, %v", tc.body, got, obj.Name)
		}
		if err == nil && obj.Kind != "ConfigMap" {
			t.Errorf("%s: %v", tc.body, obj.TypeMeta)
		}
	}
}

// nested returns a message whose innermost field lies depth levels down.
func nested(depth int, number uint64) []byte {
	var reversed []byte // built from the inside, so from the end
	for range depth {
		head := binary.AppendUvarint(nil, number<<3|2)
		head = binary.AppendUvarint(head, uint64(len(reversed)))
		slices.Reverse(head)
		reversed = append(reversed, head...)
	}
	slices.Reverse(reversed)
	return reversed
}

// A body of 3 MiB can nest half a million schemas; decoding them one in the other
// would end the process.
func TestDeepSchema(t *testing.T) {
	schemaProps := nested(500_000, 30) // JSONSchemaProps.not
	wrap := func(number byte, data []byte) []byte {
		return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(data))), data...)
	}
	validation := wrap(1, schemaProps)                                             // CustomResourceValidation.openAPIV3Schema
	crd := wrap(2, wrap(7, append(wrap(1, []byte("v1")), wrap(4, validation)...))) // spec.versions[].schema
	body := protobuf.Codec{}.AppendObject(nil, "apiextensions.k8s.io/v1", "CustomResourceDefinition", crd)
	if _, err := (protobuf.Codec{}).Decode(body, &apiextensionsv1.CustomResourceDefinition{}, codecs.Strict); err == nil || err.Error() != "exceeded max depth" {
		t.Error(err)
	}
	crd = wrap(2, wrap(7, append(wrap(1, []byte("v1")), wrap(4, wrap(1, nested(5000, 30)))...)))
	body = protobuf.Codec{}.AppendObject(nil, "apiextensions.k8s.io/v1", "CustomResourceDefinition", crd)
	if _, err := (protobuf.Codec{}).Decode(body, &apiextensionsv1.CustomResourceDefinition{}, codecs.Strict); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, pod := range pods(3) {
		pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		data, err := protobuf.Codec{}.Encode(nil, &pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(protobuf.Prefix))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, obj := range []runtime.Object{&corev1.Pod{}, &apiextensionsv1.CustomResourceDefinition{}, &metav1.DeleteOptions{}} {
			_, _, err := codecs.ReadBody(protobuf.Codec{}, data, codecs.Expected{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}, obj, codecs.Strict)
			if err != nil {
				continue
			}
			if _, err := (protobuf.Codec{}).Encode(nil, obj); err != nil {
				t.Fatal(err)
			}
		}
		protobuf.Partial(data)
	})
}

// TestUnknown: no field of an object made here is unknown, whatever the kind; a field that is added to a
// message, at the top, in a list and in a map, is named.
func TestUnknown(t *testing.T) {
	scheme, c := sample.Scheme(), protobuf.Codec{}
	r := rand.New(rand.NewSource(2))
	for _, gvk := range sample.Kinds(scheme) {
		obj, err := scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		sample.Fill(r, obj)
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		data, err := c.Encode(nil, obj)
		if err != nil {
			continue // a kind without this form
		}
		if found := c.Unknown(data, obj); len(found) > 0 {
			t.Errorf("%v: %q", gvk, found)
		}
	}
	// A release that lacks a field loses nothing of an object in which it is empty.
	older := protobuf.Codec{JSON: json.New(json.Settings{View: view.New(
		func(_ reflect.Type, field string) bool { return field == "observedGeneration" || field == "stopSignal" }, func(reflect.Type, string) bool { return false }, true,
	)})}
	signal := corev1.Signal("")
	for want, pod := range map[string]corev1.PodStatus{
		"":                              {Conditions: []corev1.PodCondition{{Type: "Ready"}}},
		"status.conditions.7 status.17": {ObservedGeneration: 3, Conditions: []corev1.PodCondition{{Type: "Ready", ObservedGeneration: 3}}},
		"status.containerStatuses.15":   {ContainerStatuses: []corev1.ContainerStatus{{StopSignal: &signal}}},
	} {
		data, err := c.Encode(nil, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Status: pod})
		if err != nil {
			t.Fatal(err)
		}
		found := older.Unknown(data, &corev1.Pod{})
		slices.Sort(found)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if !slices.Equal(found, wanted) {
			t.Errorf("found %q, want %q", found, wanted)
		}
	}
	message := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	field := func(number int, value []byte) []byte {
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(len(value))), value...)
	}
	port := message([]byte{3 << 3, 80}, field(99, []byte("new")))
	spec := message(field(1, port), field(1, port), field(2, message(field(1, []byte("a")), field(2, []byte("b")))), []byte{0xf8, 0x0f, 1})
	raw := message(field(2, spec), field(77, []byte("hunter2")))
	data := append([]byte(protobuf.Prefix), message(field(1, message(field(1, []byte("v1")), field(2, []byte("Service")))), field(2, raw))...)
	if _, err := c.Decode(data, &corev1.Service{}, codecs.Ignore); err != nil {
		t.Fatal(err)
	}
	if found := c.Unknown(data, &corev1.Service{}); !slices.Equal(found, []string{"spec.ports.99", "spec.255", "77"}) {
		t.Errorf("found %q", found)
	}
	if found := c.Unknown([]byte("k8s"), &corev1.Service{}); found != nil {
		t.Errorf("of nothing: %q", found)
	}
	many := []byte{}
	for n := range 50 {
		many = append(many, field(100+n, nil)...)
	}
	data = append([]byte(protobuf.Prefix), field(2, many)...)
	if found := c.Unknown(data, &corev1.Service{}); len(found) != 10 {
		t.Errorf("%d are named: %q", len(found), found)
	}
}

// TestZerosOfTheView: no form of making a message has a field that the view lacks, which generated code writes even where it
// is empty.
func TestZerosOfTheView(t *testing.T) {
	never := func(reflect.Type, string) bool { return false }
	lacks := func(_ reflect.Type, field string) bool { return field == "observedGeneration" }
	older := protobuf.Codec{JSON: json.New(json.Settings{View: view.New(lacks, never, false)})}
	newer := protobuf.Codec{JSON: json.New(json.Settings{View: view.New(never, never, false)})}
	for text, fewer := range map[string]int{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`:                                                                                     3,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]},"status":{"conditions":[{"type":"A","status":"True"},{"type":"B","status":"True"}]}}`: 7,
		`{"kind":"Pod", "apiVersion":"v1","status":{"conditions":[{"type":"A","status":"True"}]}}`:                                                                                          5, // decoded: no encoder wrote it
	} {
		newPod := func() runtime.Object { return &corev1.Pod{} }
		made := map[string][]byte{}
		for name, codec := range map[string]protobuf.Codec{"older": older, "newer": newer} {
			var err error
			if made[name], err = codec.AppendFromJSON(nil, newPod, reflect.TypeFor[corev1.Pod](), []byte(text)); err != nil {
				t.Fatal(err)
			}
			pod := newPod()
			if _, err := codec.JSON.Decode([]byte(text), pod, codecs.Ignore); err != nil {
				t.Fatal(err)
			}
			raw, err := codec.Message(pod)
			if err != nil || !bytes.Equal(raw, made[name]) {
				t.Errorf("%s: %s: the object's message is %q, %v, and that of its JSON %q", name, text, raw, err, made[name])
			}
			whole, err := codec.Encode(nil, pod)
			if want := codec.AppendObject(nil, "v1", "Pod", raw); err != nil || !bytes.Equal(whole, want) {
				t.Errorf("%s: %s: in its envelope %q, %v, want %q", name, text, whole, err, want)
			}
		}
		if got := len(made["newer"]) - len(made["older"]); got != fewer {
			t.Errorf("%s: %d bytes fewer, want %d", text, got, fewer)
		}
		var one, other corev1.Pod
		if err := errors.Join(one.Unmarshal(made["older"]), other.Unmarshal(made["newer"])); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(one, other) {
			t.Errorf("%s: %+v, want %+v", text, one, other)
		}
	}
}
