// Package applytest makes and changes random objects of built-in kinds, for differential tests of two
// implementations.
package applytest

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
)

// Mutate changes some values at random.
func Mutate(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || r.Intn(4) == 0 {
			refill(r, v)
			return
		}
		Mutate(r, v.Elem(), depth+1)
	case reflect.Struct:
		if v.NumField() == 0 || !v.Field(0).CanSet() {
			return
		}
		for range 1 + r.Intn(2) {
			f := v.Field(r.Intn(v.NumField()))
			if f.CanSet() {
				Mutate(r, f, depth+1)
			}
		}
	case reflect.Slice:
		switch n := v.Len(); {
		case n > 0 && r.Intn(3) > 0:
			Mutate(r, v.Index(r.Intn(n)), depth+1)
		case n > 1 && r.Intn(2) == 0: // a new order
			out := reflect.MakeSlice(v.Type(), n, n)
			for i, j := range r.Perm(n) {
				out.Index(i).Set(v.Index(j))
			}
			v.Set(out)
		default:
			refill(r, v)
		}
	default:
		refill(r, v)
	}
}

func refill(r *rand.Rand, v reflect.Value) {
	if r.Intn(4) == 0 {
		v.SetZero()
		return
	}
	sample.Fill(r, v.Addr().Interface())
}

// Settle gives a random object the metadata of a stored one and the Go form of a decoded one: the merge
// library distinguishes empty lists from absent ones inside lists, which JSON does not.
func Settle(t *testing.T, obj kinds.Object, entries []metav1.ManagedFieldsEntry, created bool) bool {
	obj.SetManagedFields(nil)
	text, err := json.Marshal(obj)
	if err != nil {
		return false // random raw extensions have no JSON
	}
	reflect.ValueOf(obj).Elem().SetZero()
	if err := json.Unmarshal(text, obj); err != nil {
		t.Fatal(err)
	}
	release.Default.View().Clear(obj) // no decoded object has fields that the release lacks
	obj.SetName("x")
	obj.SetManagedFields(entries)
	obj.SetUID("")
	if created {
		obj.SetUID(types.UID("7"))
	}
	return true
}

// Stored returns the built-in resources whose objects are stored.
func Stored() []*kinds.Resource {
	return slices.DeleteFunc(slices.Clone(builtin.Resources()), func(r *kinds.Resource) bool { return r.New == nil || r.Storage == nil })
}
