package json_test

import (
	stdjson "encoding/json"
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/google/go-cmp/cmp"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := stdjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestListEqualsEncoding(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for n := range 5 {
		left := int64(n)
		want := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "x<", RemainingItemCount: &left}, Items: []corev1.Pod{}}
		partials := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, ListMeta: want.ListMeta}
		list, err := json.AppendListHead(nil, "v1", "PodList", &want.ListMeta)
		if err != nil {
			t.Fatal(err)
		}
		partialList, err := json.AppendListHead(nil, "meta.k8s.io/v1", "PartialObjectMetadataList", &want.ListMeta)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			pod := corev1.Pod{}
			sample.Fill(r, &pod)
			pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			encoded := []byte(marshal(t, pod))
			partial := meta.AsPartialObjectMetadata(&pod)
			partial.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
			partials.Items = append(partials.Items, *partial)
			event := json.AppendEvent(nil, "ADDED", encoded)
			if diff := cmp.Diff(marshal(t, metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Object: &pod}})+"\n", string(event)); diff != "" {
				t.Fatal(diff)
			}
			pod.TypeMeta = metav1.TypeMeta{}
			want.Items = append(want.Items, pod)
			if i > 0 {
				list, partialList = append(list, ','), append(partialList, ',')
			}
			list = json.AppendListItem(list, encoded)
			partialList = json.AppendPartial(partialList, "v1", encoded)
		}
		list, partialList = append(list, json.ListTail...), append(partialList, json.ListTail...)
		if n == 0 {
			if partialList, err = json.AppendEmptyPartialList(nil, "v1", &want.ListMeta); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(marshal(t, want), string(list)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(marshal(t, partials), string(partialList)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestIndent(t *testing.T) {
	got, err := json.Indent([]byte("x"), []byte(`{"a":[1,{}],"b":"<"}`))
	if err != nil || string(got) != "x{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"<\"\n}" {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzScan checks that the scanner finds in well-formed objects what decoding
// finds, and survives anything else.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, ` { "a" : [ 1 , "]" ] , "b\"" : { "c" : "\\" } } `, `{"kind":"Pod","apiVersion":"v1"}`, `{"a"`, `[1,2]`, `{"a":"\`, `{"Kind":null,"kind":"x"}`, `{"kind":"x","kind":"y"}`, `{"metadata":{"name":"a"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found := map[string]string{}
		whole := json.EachField(data, func(name, value []byte) bool {
			found[string(name)] = string(value)
			return true
		})
		json.EachElement(data, func([]byte) bool { return true })
		json.AppendListItem(nil, data)
		json.AppendPartial(nil, "v1", data)
		var want map[string]stdjson.RawMessage
		if stdjson.Unmarshal(data, &want) != nil || want == nil {
			return
		}
		if !whole {
			t.Fatalf("%q: not read to the end", data)
		}
		for name, value := range found {
			var plain string
			if stdjson.Unmarshal([]byte(`"`+name+`"`), &plain) != nil {
				t.Fatalf("%q: name %q", data, name)
			}
			if plain == name && len(found) == len(want) && string(want[name]) != value {
				t.Fatalf("%q: %q is %q, want %q", data, name, value, want[name])
			}
		}
	})
}
