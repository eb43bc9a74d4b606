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
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
)

// fast and standard are the two implementations.
var (
	fast     = json.New(json.Settings{})
	standard = json.New(json.Settings{Standard: true})
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := stdjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// put makes a whole list or table of items.
func put(t *testing.T, s codecs.Streamer, l *codecs.List, items ...[]byte) string {
	t.Helper()
	out, err := s.AppendListHead([]byte("x"), l)
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range items {
		out = append(s.AppendItemHead(out, i == 0, len(item)), item...)
	}
	return string(s.AppendListTail(out, l)[1:])
}

// TestListEqualsEncoding: lists, and their metadata alone, equal the output of encoding/json.
func TestListEqualsEncoding(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for n := range 5 {
		left := int64(n)
		want := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "x<", RemainingItemCount: &left}, Items: []corev1.Pod{}}
		partials := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, ListMeta: want.ListMeta}
		var items, partialItems [][]byte
		for range n {
			pod := corev1.Pod{}
			sample.Fill(r, &pod)
			pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			encoded, err := fast.Message(&pod)
			if err != nil {
				t.Fatal(err)
			}
			partial := meta.AsPartialObjectMetadata(&pod)
			partial.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
			partials.Items = append(partials.Items, *partial)
			partialItems = append(partialItems, json.AppendPartial(nil, "v1", encoded))
			event := fast.AppendEvent(nil, "ADDED", "v1", "Pod", encoded)
			if diff := cmp.Diff(marshal(t, metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Object: &pod}})+"\n", string(event)); diff != "" {
				t.Fatal(diff)
			}
			pod.TypeMeta = metav1.TypeMeta{}
			want.Items = append(want.Items, pod)
			items = append(items, []byte(marshal(t, pod)))
		}
		got := put(t, fast, &codecs.List{Kind: "PodList", APIVersion: "v1", Meta: &want.ListMeta}, items...)
		if diff := cmp.Diff(marshal(t, want), got); diff != "" {
			t.Fatal(diff)
		}
		got = put(t, fast, &codecs.List{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1", Meta: &want.ListMeta, NoItems: n == 0}, partialItems...)
		if diff := cmp.Diff(marshal(t, partials), got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestListMeta: absent fields are left out.
func TestListMeta(t *testing.T) {
	left := int64(0)
	for _, meta := range []metav1.ListMeta{{}, {Continue: "a"}, {RemainingItemCount: &left}, {ResourceVersion: "7", RemainingItemCount: &left}, {ResourceVersion: "7", Continue: "\"<\u2028"}} {
		if diff := cmp.Diff(marshal(t, meta), string(json.AppendListMeta(nil, &meta))); diff != "" {
			t.Error(diff)
		}
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: meta}
		if diff := cmp.Diff(marshal(t, list), put(t, fast, &codecs.List{Kind: "PodList", APIVersion: "v1", Meta: &meta, NoItems: true})); diff != "" {
			t.Error(diff)
		}
	}
}

// TestCustomList: lists of custom resources are maps, whose members are in the order of names.
func TestCustomList(t *testing.T) {
	left := int64(3)
	items := []any{map[string]any{"a": "b"}, map[string]any{"c": 1}}
	for _, c := range []struct {
		meta *metav1.ListMeta
		want map[string]any
	}{
		{&metav1.ListMeta{ResourceVersion: "5"}, map[string]any{"continue": "", "resourceVersion": "5"}},
		{&metav1.ListMeta{ResourceVersion: "5", Continue: "x", RemainingItemCount: &left}, map[string]any{"continue": "x", "resourceVersion": "5", "remainingItemCount": left}},
		{nil, nil},
	} {
		want := map[string]any{"kind": "ThingList", "apiVersion": "example.com/v1", "items": items}
		if c.want != nil {
			want["metadata"] = c.want
		}
		got := put(t, fast, &codecs.List{Kind: "ThingList", APIVersion: "example.com/v1", Meta: c.meta, Custom: true}, []byte(`{"a":"b"}`), []byte(`{"c":1}`))
		if diff := cmp.Diff(marshal(t, want), got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestIndent(t *testing.T) {
	got, err := json.Indent([]byte("x"), []byte(`{"a":[1,{}],"b":"<"}`))
	if err != nil || string(got) != "x{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"<\"\n}" {
		t.Errorf("%q, %v", got, err)
	}
}
