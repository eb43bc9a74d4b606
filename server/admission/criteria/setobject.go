package criteria

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// New returns an empty object of the kind that a target shows.
func (t Target) New(a *admission.Attributes) runtime.Object {
	if Whole(a) && t.Resource.New != nil {
		return t.Resource.New()
	}
	return reflect.New(reflect.TypeOf(a.Object).Elem()).Interface().(runtime.Object)
}

// SetObject replaces the object of the write by an object in the version of a target, with defaults.
func (t Target) SetObject(a *admission.Attributes, obj runtime.Object) error {
	if whole, ok := obj.(kinds.Object); ok && Whole(a) {
		back, err := t.Back(a, whole)
		if err != nil {
			return err
		}
		if a.Resource.AnyBody() {
			// A client may have patched the kind away, which is found later and refused: it
			// must not be corrected here.
			back.GetObjectKind().SetGroupVersionKind(a.Object.GetObjectKind().GroupVersionKind())
		}
		// Unknown fields are refused as in an object from a client.
		if _, err := a.Resource.Coerce(back); err != nil {
			return err
		}
		if a.Resource.Storage != nil {
			a.Resource.SetDefaults(back)
		}
		obj = back
	}
	from, to := reflect.ValueOf(obj), reflect.ValueOf(a.Object)
	if from.Type() != to.Type() {
		return fmt.Errorf("a %v cannot take the place of a %v", from.Type(), to.Type())
	}
	to.Elem().Set(from.Elem())
	return nil
}
