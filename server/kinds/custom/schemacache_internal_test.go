package custom

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// source reads a schema and counts how often.
type source struct {
	mu   sync.Mutex
	read map[string]int
	size int
	err  error
}

func (s *source) Read(version string) (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[version]++
	return &apiextensionsv1.CustomResourceDefinitionVersion{Name: version, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"spec"}},
	}}, s.size, s.err
}

func (s *source) definition(t *testing.T, kept *SchemaCache) *Definition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group, crd.Status.AcceptedNames.Plural, crd.Status.AcceptedNames.Kind = "example.com", "lamps", "Lamp"
	for _, name := range []string{"v1", "v2", "v3"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: name == "v1"})
	}
	d, err := From(crd, 1, nil, Source{Read: s.Read, Kept: kept})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func refused(v *Version) bool {
	return len(v.Schema().Validate(context.Background(), nil, map[string]any{}, nil)) > 0
}

// TestKeptWhileUsed: a schema is read at its first use, stays while it is used, and is dropped some
// time later; without one no goroutine runs.
func TestKeptWhileUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, s := NewSchemaCache(), &source{read: map[string]int{}, size: 1}
		v := s.definition(t, kept).Version("v1")
		var running sync.WaitGroup
		defer running.Wait()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		running.Go(func() { kept.Run(ctx) })
		if s.read["v1"] != 0 {
			t.Fatal("it is read before it is used")
		}
		held := v.Schema()
		for range 20 {
			time.Sleep(compiledIdle - time.Second)
			if !refused(v) {
				t.Fatal("nothing is refused")
			}
		}
		if s.read["v1"] != 1 {
			t.Errorf("while it was used it was read %d times", s.read["v1"])
		}
		time.Sleep(2 * compiledIdle)
		if v.made.Load() != nil || kept.bytes != 0 || len(kept.all) != 0 {
			t.Error("what is idle is kept")
		}
		if len(held.Validate(ctx, nil, map[string]any{}, nil)) == 0 {
			t.Error("whoever has it cannot use it on")
		}
		if !refused(v) || s.read["v1"] != 2 {
			t.Errorf("used again, it was read %d times", s.read["v1"])
		}
		time.Sleep(2 * compiledIdle)
		if v.made.Load() != nil {
			t.Error("what was used again and is idle is kept")
		}
	})
}

// TestKeptIsBounded: compiled schemas have a bound on their text, except for the last one; the least recently
// used go first.
func TestKeptIsBounded(t *testing.T) {
	kept, s := NewSchemaCache(), &source{read: map[string]int{}, size: 60}
	kept.limit = 130
	var clock int64
	kept.now = func() time.Time { clock++; return time.Unix(0, clock) }
	d := s.definition(t, kept)
	for _, name := range []string{"v1", "v2", "v1", "v3"} {
		d.Version(name).Schema()
	}
	if d.Version("v2").made.Load() != nil || d.Version("v1").made.Load() == nil || d.Version("v3").made.Load() == nil || kept.bytes != 120 {
		t.Errorf("kept %d bytes of %d versions", kept.bytes, len(kept.all))
	}
	s.size = 1000
	d.Version("v2").Schema()
	if len(kept.all) != 1 || d.Version("v2").made.Load() == nil || kept.bytes != 1000 {
		t.Errorf("of one that is too large by itself: %d bytes of %d versions", kept.bytes, len(kept.all))
	}
}

// TestKeptByMany: many use versions while others take their places; each always sees a schema.
func TestKeptByMany(t *testing.T) {
	kept, s := NewSchemaCache(), &source{read: map[string]int{}, size: 60}
	kept.limit = 70
	d := s.definition(t, kept)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 300 {
				if !refused(d.Version([]string{"v1", "v2", "v3"}[i%3])) {
					t.Error("what the schema refuses was taken")
				}
				kept.sweep()
			}
		})
	}
	all.Wait()
}

// TestUnreadableSchema: objects are refused, and nothing else happens.
func TestUnreadableSchema(t *testing.T) {
	s := &source{read: map[string]int{}, err: errors.New("gone")}
	v := s.definition(t, NewSchemaCache()).Version("v1")
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(v.gvk)
	if _, err := v.Coerce(u); !errors.Is(err, s.err) {
		t.Errorf("Coerce: %v", err)
	}
	if !refused(v) || len(v.Schema().ValidateStatus(t.Context(), nil, u.Object, u.Object)) == 0 {
		t.Error("an object is valid")
	}
	v.Schema().Default(u.Object)
	if _, err := v.Merging(); !errors.Is(err, s.err) {
		t.Errorf("Merging: %v", err)
	}
	if _, err := v.OpenAPI(); !errors.Is(err, s.err) {
		t.Errorf("OpenAPI: %v", err)
	}
}
