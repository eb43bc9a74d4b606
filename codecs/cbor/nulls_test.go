package cbor_test

import (
	stdjson "encoding/json"
	"math/rand"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/codecs/view"
)

// TestNullsOfTheView: CBOR has null for the empty fields for which JSON has it, in objects with all fields and in empty ones.
func TestNullsOfTheView(t *testing.T) {
	settings := json.Settings{View: view.New(
		func(reflect.Type, string) bool { return false },
		func(_ reflect.Type, field string) bool { return field == "creationTimestamp" }, true,
	)}
	text := json.New(settings)
	codec := cbor.Codec{JSON: text}
	tree := func(data []byte) (out any) {
		t.Helper()
		if err := stdjson.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	scheme, r, nulls := sample.Scheme(), rand.New(rand.NewSource(1)), 0
	for _, gvk := range sample.Kinds(scheme) {
		if gvk.Kind == "WatchEvent" {
			continue
		}
		for _, full := range []bool{false, true} {
			obj, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			if full {
				sample.Fill(r, obj)
			}
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			want, err := text.Encode(nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			data, err := codec.Encode(nil, obj)
			if err != nil {
				continue // TestEqualsStock compares errors
			}
			var got any
			if err := direct.Unmarshal(data, &got); err != nil {
				t.Fatalf("%v: %v", gvk, err)
			}
			again, err := stdjson.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(want), tree(again)); diff != "" {
				t.Fatalf("%v, full %t: JSON against CBOR:\n%s", gvk, full, diff)
			}
			plain, err := json.New(json.Settings{}).Encode(nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(tree(plain), tree(want)) {
				nulls++
			}
			back, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := codec.FromJSON(func() runtime.Object { return back }, want)
			if err != nil {
				t.Fatal(err)
			}
			message, err := codec.Message(obj)
			if err != nil || len(raw) != len(message) {
				t.Fatalf("%v, full %t: %d bytes from JSON, %d from the object, %v", gvk, full, len(raw), len(message), err)
			}
		}
	}
	if nulls < 100 {
		t.Errorf("only %d objects have a null", nulls)
	}
}
