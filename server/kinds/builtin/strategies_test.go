package builtin_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// TestEmptyObjects walks an empty object of every kind through all functions of
// its resource: a client may send one.
func TestEmptyObjects(t *testing.T) {
	ctx := context.Background()
	for _, r := range builtin.Resources() {
		if r.Storage == nil || r.New == nil {
			continue
		}
		t.Run(r.GroupResource().String()+"."+r.Version, func(t *testing.T) {
			fresh := func() kinds.Object {
				obj := r.New()
				obj.SetName("x")
				if r.ToStorage == nil {
					return obj
				}
				out, err := r.ToStorage(obj)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			obj, old := fresh(), fresh()
			walk(ctx, t, &r.Storage.Strategy, obj, old)
			for i := range r.Subresources {
				if s := r.Subresources[i].Update; s != nil {
					walk(ctx, t, s, fresh(), old)
				}
				if m := r.Subresources[i].Scale; m != nil {
					m.SetReplicas(obj, 7)
					if spec, _ := m.Replicas(obj); spec != 7 {
						t.Errorf("scale is %d after setting 7", spec)
					}
					m.Selector(obj)
				}
			}
			if r.FromStorage != nil {
				if _, err := r.FromStorage(obj); err != nil {
					t.Error(err)
				}
			}
			checkCells(t, r, fresh())
		})
	}
}

func walk(ctx context.Context, t *testing.T, s *kinds.Strategy, obj, old kinds.Object) {
	t.Helper()
	if s.Default != nil {
		s.Default(old)
		s.Default(obj)
		again := obj.DeepCopyObject()
		s.Default(again.(kinds.Object))
		if !reflect.DeepEqual(obj, again) {
			t.Errorf("defaults of defaults differ:\n%#v\n%#v", obj, again)
		}
	}
	if s.PrepareForCreate != nil {
		s.PrepareForCreate(ctx, obj)
	}
	if s.Validate != nil {
		s.Validate(ctx, obj)
	}
	if s.Warnings != nil {
		s.Warnings(ctx, obj, nil)
	}
	if s.PrepareForUpdate != nil {
		before := old.DeepCopyObject()
		s.PrepareForUpdate(ctx, obj, old)
		if !reflect.DeepEqual(before, old) {
			t.Error("preparing an update changes the old object")
		}
	}
	if s.ValidateUpdate != nil {
		s.ValidateUpdate(ctx, obj, old)
	}
	if s.Warnings != nil {
		s.Warnings(ctx, obj, old)
	}
	if s.Canonicalize != nil {
		s.Canonicalize(obj)
	}
}

// undefined has the number of cells that the rows of a kind have beyond its columns.
var undefined = map[string]int{"IPAddress": 1}

func checkCells(t *testing.T, r *kinds.Resource, obj kinds.Object) {
	t.Helper()
	if r.Columns.Cells == nil {
		return
	}
	if got, want := len(r.Columns.Cells(obj, time.Now())), len(r.Columns.Definitions)+undefined[r.Kind]; got != want {
		t.Errorf("%d cells for %d columns", got, want)
	}
}
