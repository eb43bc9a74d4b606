package objects_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
)

// endless converts for as long as it may.
type endless struct{ kinds.Schema }

func (endless) Clean(int64) bool { return false }

func (endless) FromStore(ctx context.Context, _ ...kinds.Object) ([]kinds.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (endless) ToStore(ctx context.Context, _ kinds.Object) (kinds.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestConversionsEndWithTheRequest: a conversion webhook delays nothing beyond its request, whether for a
// write or for an answer.
func TestConversionsEndWithTheRequest(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Thing"}
	r := &kinds.Resource{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: "things", Schema: endless{},
		New:     func() kinds.Object { return &unstructured.Unstructured{} },
		Storage: &kinds.Storage{Key: "things.a.example", GVK: gvk},
	}
	obj := func() kinds.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetName("x")
		return u
	}
	item := cache.NewOwnItem(&sqlstore.Row{Revision: 1, Value: []byte(`{"apiVersion":"a.example/v1","kind":"Thing","metadata":{"name":"x"}}`)}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := objects.New(nil, nil, cache.New(nil))
	for what, convert := range map[string]func() error{
		"reading for a write": func() error { _, err := s.Decode(ctx, r, item); return err },
		"storing":             func() error { _, err := s.Encode(ctx, r, obj(), 0); return err },
		"showing":             func() error { _, err := s.JSON(ctx, r, item); return err },
		"showing a page":      func() error { return s.Convert(ctx, r, []*cache.Item{item}) },
	} {
		if err := convert(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// present has the objects that it stores, and does not know that.
type present struct{ kinds.AsStored }

func (present) Clean(int64) bool { return false }

// TestObjectsThatConvertToThemselves: the JSON of an object that a definition leaves as it is stored is kept once.
func TestObjectsThatConvertToThemselves(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "a.example", Version: "v1", Kind: "Thing"}
	r := &kinds.Resource{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: "things", Schema: present{},
		New:     func() kinds.Object { return &unstructured.Unstructured{} },
		Storage: &kinds.Storage{Key: "things.a.example", GVK: gvk},
	}
	s := objects.New(nil, nil, cache.New(nil))
	for text, same := range map[string]bool{
		`{"apiVersion":"a.example/v1","kind":"Thing","metadata":{"name":"x","uid":"u"},"spec":{"a":1}}`: true,
		`{"spec":{"a":1},"metadata":{"name":"x","uid":"u"},"kind":"Thing","apiVersion":"a.example/v1"}`: false,
	} {
		item := cache.NewOwnItem(&sqlstore.Row{Revision: 7, Value: []byte(text)}, nil)
		for range 2 {
			data, err := s.JSON(t.Context(), r, item)
			if err != nil || len(data) == 0 || (&data[0] == &item.JSON()[0]) != same || !strings.Contains(string(data), `"resourceVersion":"7"`) {
				t.Errorf("%s becomes %s, in memory of its own: %t, %v", text, data, !same, err)
			}
		}
	}
}
