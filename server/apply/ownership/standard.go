package ownership

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/schema/merging"
)

// standard is the tracker that uses the field managers of apimachinery, which turn objects
// into typed values of structured-merge-diff. It handles every case.
type standard struct {
	schemas  *schema.Schemas
	managers sync.Map // endpoint -> *managedfields.FieldManager
}

// endpoint identifies a field manager of the library.
type endpoint struct {
	resource    *kinds.Resource
	subresource string
}

func (s *standard) track(w write) ([]metav1.ManagedFieldsEntry, error) {
	for _, o := range []kinds.Object{w.old, w.new} {
		if err := checkFields(o); err != nil {
			return nil, err
		}
		if err := checkEntries(o.GetManagedFields()); err != nil {
			return nil, err
		}
	}
	m, err := s.manager(w.resource, w.subresource)
	if err != nil {
		return nil, err
	}
	gvk := w.resource.GVK()
	if w.resource.HasGoType() { // trees contain their kind, which is checked later
		w.old.GetObjectKind().SetGroupVersionKind(gvk)
		w.new.GetObjectKind().SetGroupVersionKind(gvk)
	}
	// The library starts with the entries of the new object, or for a subresource with those of the old one.
	w.new.SetManagedFields(w.entries)
	live := w.old
	if w.subresource != "" && !reflect.DeepEqual(w.old.GetManagedFields(), w.entries) {
		live = w.old.DeepCopyObject().(kinds.Object)
		live.SetManagedFields(w.entries)
	}
	if _, err := m.Update(live, w.new, w.manager); err != nil {
		return nil, fmt.Errorf("tracking fields of %v %s/%s: %w", gvk, w.new.GetNamespace(), w.new.GetName(), err)
	}
	after := w.new.GetManagedFields()
	stamp(w.entries, after, w.now)
	return after, nil
}

// manager returns the library's field manager for an endpoint.
func (s *standard) manager(r *kinds.Resource, sub string) (*managedfields.FieldManager, error) {
	key := endpoint{r, sub}
	if m, ok := s.managers.Load(key); ok {
		return m.(*managedfields.FieldManager), nil
	}
	m, err := libraryManager(r, sub, converter{schemas: s.schemas})
	if err != nil {
		return nil, err
	}
	if r.HasGoType() {
		s.managers.Store(key, m) // other resources come and go
	}
	return m, nil
}

// libraryManager makes a field manager of the library for an endpoint.
func libraryManager(r *kinds.Resource, sub string, c converter) (*managedfields.FieldManager, error) {
	var reset [][]string
	for _, p := range resetFields(r, sub) {
		reset = append(reset, strings.Split(p, "."))
	}
	types := c.schemas.Converter()
	if r.HasGoType() && c.schemas.Catalogue().LookupKind(r.GVK()) == nil { // the body of a subresource
		types = c.schemas.ConverterAs(r.GoType())
	}
	m, err := merging.NewFieldManager(merging.Kind{
		Converter: types, Convertor: c, Defaulter: c, Creater: c,
		Kind: r.GVK(), Subresource: sub, ResetFields: reset, Custom: !r.HasGoType(),
	})
	if err != nil {
		return nil, fmt.Errorf("field manager of %v: %w", r.GVK(), err)
	}
	return m, nil
}
