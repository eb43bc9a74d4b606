package cbor_test

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	stock "k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"github.com/google/go-cmp/cmp"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/codecs/view"
)

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := stdjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

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
		wantErr := reference.Encode(obj, &want)
		got, err := cbor.Codec{}.Encode(nil, obj)
		if (err != nil) != (wantErr != nil) || err == nil && !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%v: %v, want %v", gvk, err, wantErr)
		}
		if err != nil {
			continue
		}
		if obj.GetObjectKind().GroupVersionKind() != gvk {
			continue // a WatchEvent has no kind of its own
		}
		covered++
		if found, err := (cbor.Codec{}).Kind(got); err != nil || found != gvk {
			t.Fatalf("%v: %v, %v", gvk, found, err)
		}
		raw, err := cbor.Codec{}.Message(obj)
		if err != nil {
			t.Fatal(err)
		}
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		if len(strings.TrimSpace(kind)) == 0 {
			t.Fatal(gvk)
		}
		decoded := newObject()
		if problems, err := (cbor.Codec{}).Decode(cbor.Codec{}.AppendObject(nil, apiVersion, kind, raw), decoded, codecs.Strict); err != nil || problems != nil {
			t.Fatalf("%v: %v %v", gvk, problems, err)
		}
		wanted, _, err := reference.Decode(want.Bytes(), nil, newObject())
		if err != nil {
			t.Fatalf("%v: %v", gvk, err)
		}
		if diff := cmp.Diff(text(t, wanted), text(t, decoded)); diff != "" {
			t.Fatalf("%v: %s", gvk, diff)
		}
	}
	if covered < 200 {
		t.Errorf("only %d kinds covered", covered)
	}
}

func TestListAndEvents(t *testing.T) {
	scheme := sample.Scheme()
	reference := stock.NewSerializer(scheme, scheme)
	r := rand.New(rand.NewSource(4))
	for _, n := range []int{0, 1, 30, 300} {
		want := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "3"}, Items: []corev1.ConfigMap{}}
		got, err := cbor.Codec{}.AppendListHead(nil, &codecs.List{APIVersion: "v1", Kind: "ConfigMapList", Meta: &want.ListMeta, Count: n})
		if err != nil {
			t.Fatal(err)
		}
		var stream []byte
		for range n {
			item := corev1.ConfigMap{}
			sample.Fill(r, &item)
			item.TypeMeta = metav1.TypeMeta{}
			want.Items = append(want.Items, item)
			raw, err := cbor.Codec{}.FromJSON(func() runtime.Object { return &corev1.ConfigMap{} }, []byte(text(t, item)))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, raw...)
			stream = cbor.Codec{}.AppendEvent(stream, "ADDED", "v1", "ConfigMap", raw)
		}
		decoded := &corev1.ConfigMapList{}
		if _, _, err := reference.Decode(got, nil, decoded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text(t, want), text(t, decoded)); diff != "" {
			t.Fatal(diff)
		}
		frames := stock.NewFramer().NewFrameReader(io.NopCloser(bytes.NewReader(stream)))
		frame := make([]byte, 1<<20)
		for i := range n {
			size, err := frames.Read(frame)
			if err != nil {
				t.Fatal(err)
			}
			var event metav1.WatchEvent
			scheme.AddKnownTypes(schema.GroupVersion{Version: "v1"})
			if _, _, err := stock.NewSerializer(scheme, scheme, stock.Transcode(false)).Decode(frame[:size], &schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}, &event); err != nil {
				t.Fatal(err)
			}
			obj, _, err := reference.Decode(event.Object.Raw, nil, nil)
			if err != nil || event.Type != "ADDED" {
				t.Fatal(event.Type, err)
			}
			want.Items[i].TypeMeta = metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
			if diff := cmp.Diff(text(t, want.Items[i]), text(t, obj)); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func TestUnstructured(t *testing.T) {
	const in = `{"apiVersion":"x.example.com/v1","kind":"X","metadata":{"name":"a"},"spec":{"f":1.5,"i":3,"l":[true,null,"s"]}}`
	raw, err := cbor.Codec{}.FromJSON(nil, []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if _, err := (cbor.Codec{}).Decode(cbor.Codec{}.AppendObject(nil, "", "", raw), u, codecs.Strict); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, text(t, u)); diff != "" {
		t.Error(diff)
	}
	back, err := cbor.ToJSON(cbor.Codec{}.AppendObject(nil, "", "", raw))
	if err != nil || string(back) != in {
		t.Errorf("%s %v", back, err)
	}
}

func TestProblems(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "dta": "x"}}
	data, err := cbor.Codec{}.Encode(nil, u)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[codecs.Strictness]int{codecs.Ignore: 0, codecs.Warn: 1, codecs.Strict: 1} {
		problems, err := cbor.Codec{}.Decode(data, &corev1.ConfigMap{}, s)
		if err != nil || len(problems) != want {
			t.Errorf("%v: %v %v", s, problems, err)
		}
	}
	if _, err := (cbor.Codec{}).Kind([]byte("nonsense")); err == nil || !strings.HasPrefix(err.Error(), "unable to determine group/version/kind: ") {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"name": "x"}}}
	data, err := cbor.Codec{}.Encode(nil, u)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{0xa1, 0x61, 'a', 0x81, 0xf6})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, obj := range []runtime.Object{&corev1.Pod{}, &unstructured.Unstructured{}} {
			_, _, err := codecs.ReadBody(cbor.Codec{}, data, codecs.Expected{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}, obj, codecs.Warn)
			if err != nil {
				continue
			}
			if _, err := (cbor.Codec{}).Encode(nil, obj); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = cbor.ToJSON(data)
		cbor.Codec{}.AppendObject(nil, "v1", "Pod", data)
	})
}

// Clients must not come to rely on an order of members: docs/design/openapi.md.
func TestAnswersAreNotTheSameTwice(t *testing.T) {
	newMap := func() runtime.Object { return &corev1.ConfigMap{} }
	typed, err := cbor.Codec{}.FromJSON(newMap, []byte(`{"metadata":{"name":"a"},"data":{"k":"v"}}`))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 70_000)
	untyped, err := cbor.Codec{}.FromJSON(nil, []byte(`{"a":"`+long+`","apiVersion":"v1","kind":"ConfigMap","list":[1,[2.5,-3],{"n":null,"t":true}],"metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	variants := func(encode func() []byte) map[string]bool {
		seen, value := map[string]bool{}, ""
		for range 200 {
			data := encode()
			seen[string(data)] = true
			json, err := cbor.ToJSON(data)
			if err != nil {
				t.Fatalf("%x: %v", data, err)
			}
			if value == "" {
				value = string(json)
			}
			if value != string(json) {
				t.Fatalf("got %s, want %s", json, value)
			}
		}
		return seen
	}
	for name, c := range map[string]struct {
		encode func() []byte
		want   int
	}{
		"object": {func() []byte { return cbor.Codec{}.AppendObject(nil, "v1", "ConfigMap", typed) }, 4},
		"custom": {func() []byte { return cbor.Codec{}.AppendObject(nil, "", "", untyped) }, 2},
		"event":  {func() []byte { return cbor.Codec{}.AppendEvent(nil, "ADDED", "v1", "ConfigMap", typed) }, 8},
	} {
		if seen := variants(c.encode); len(seen) != c.want {
			t.Errorf("%s: %d ways to write it, want %d", name, len(seen), c.want)
		}
	}
}

// TestFieldsOfTheView: a field that the view lacks is read as an unknown one, and never written.
func TestFieldsOfTheView(t *testing.T) {
	older := cbor.Codec{JSON: json.New(json.Settings{View: view.New(
		func(_ reflect.Type, field string) bool { return field == "hostnameOverride" || field == "stopSignal" },
		func(reflect.Type, string) bool { return false }, true,
	)})}
	host, signal := "h", corev1.SIGTERM
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{
		HostnameOverride: &host, Containers: []corev1.Container{{Name: "c", Lifecycle: &corev1.Lifecycle{StopSignal: &signal}}},
	}}
	data, err := older.Encode(nil, pod)
	if err != nil {
		t.Fatal(err)
	}
	for s, reported := range map[codecs.Strictness]bool{codecs.Ignore: false, codecs.Warn: true, codecs.Strict: true} {
		got := &corev1.Pod{}
		problems, err := older.Decode(data, got, s)
		if err != nil || len(problems) > 0 != reported || reported && !strings.Contains(problems[0], "found unknown field at map element index") {
			t.Errorf("%v: %q, %v", s, problems, err)
		}
		if got.Spec.HostnameOverride != nil || got.Spec.Containers[0].Lifecycle.StopSignal != nil || got.Spec.Containers[0].Name != "c" {
			t.Errorf("%v: read %+v", s, got.Spec)
		}
		if problems, err := (cbor.Codec{}).Decode(data, got, s); err != nil || len(problems) > 0 || got.Spec.HostnameOverride == nil {
			t.Errorf("%v, with all fields: %q, %v, %+v", s, problems, err, got.Spec)
		}
	}
	raw, err := older.FromJSON(func() runtime.Object { return &corev1.Pod{} }, []byte(text(t, pod)))
	if err != nil || bytes.Contains(raw, []byte("hostnameOverride")) || bytes.Contains(raw, []byte("stopSignal")) {
		t.Errorf("written: %q, %v", raw, err)
	}
}
