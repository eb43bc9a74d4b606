package ownership

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// Apply merges a server-side apply patch (YAML or JSON) into live, or into an empty object if live is nil,
// and records manager as the owner of the applied fields. The result is neither defaulted nor validated; live
// is not changed. Values in it may share memory with patch, which must not change any more. clean means that
// RepeatedFields would find nothing in patch.
//
// Errors: 400 for a patch that is not an object of r's kind; 409 with one cause a field for fields that
// others own, unless force is set; 413 for a patch that would take the library too long; plain errors, 500 to
// clients, for fields that the kind does not have.
func (m *FieldManager) Apply(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool, now time.Time) (merged kinds.Object, clean bool, err error) {
	if live != nil && m.planned != nil && r.HasGoType() && quickText(patch) {
		a := application{resource: r, subresource: sub, live: live, body: patch, codec: m.json, manager: manager, now: now}
		if obj, err := m.tryReapply(a); err == nil {
			m.count(Planned)
			return obj, true, nil
		}
	}
	m.count(Standard)
	tree, clean := quickTree(m.json, patch)
	if !clean {
		if tree, err = ReadTree(patch); err != nil {
			return nil, false, err
		}
	}
	if live == nil {
		live = r.New()
	} else {
		live = live.DeepCopyObject().(kinds.Object) // the library does not report ignored fields
	}
	merged, err = m.standard.apply(r, sub, live, tree, manager, force, now)
	return merged, clean, err
}

// tryReapply tries the fast path.
func (m *FieldManager) tryReapply(a application) (obj kinds.Object, err error) {
	err = m.quickly(a.resource, a.live, func() error {
		obj, err = m.planned.reapply(a)
		return err
	})
	return obj, err
}

// apply merges tree into live.
func (s *standard) apply(r *kinds.Resource, sub string, live kinds.Object, tree map[string]any, manager string, force bool, now time.Time) (kinds.Object, error) {
	if err := checkFields(tree); err != nil {
		return nil, err
	}
	if err := checkFields(live); err != nil {
		return nil, err
	}
	before := live.GetManagedFields()
	if err := checkEntries(before); err != nil {
		return nil, err
	}
	merger, err := s.merger(r, sub, live, tree)
	if err != nil {
		return nil, err
	}
	live.GetObjectKind().SetGroupVersionKind(r.GVK())
	result, err := merger.Apply(live, &unstructured.Unstructured{Object: tree}, manager, force)
	if err != nil {
		return nil, err
	}
	obj, ok := result.(kinds.Object)
	if !ok {
		return nil, fmt.Errorf("apply made a %T of %v", result, r.GVK())
	}
	after := obj.GetManagedFields()
	stamp(before, after, now)
	obj.SetManagedFields(after)
	obj.GetObjectKind().SetGroupVersionKind(r.GVK())
	return obj, nil
}

// merger returns the library's field manager for an apply of tree to live, which answers as the release of r does.
func (s *standard) merger(r *kinds.Resource, sub string, live kinds.Object, tree map[string]any) (*managedfields.FieldManager, error) {
	if r.Release.Has(release.OptionalKeys) && r.Release.Has(release.EmptiedStay) {
		return s.manager(r, sub)
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(r.GVK())
	schema, err := s.schemas.Merging(empty)
	if err != nil {
		return nil, err
	}
	if !r.Release.Has(release.OptionalKeys) {
		if err := checkKeys(schema, tree); err != nil {
			return nil, err
		}
	}
	if r.Release.Has(release.EmptiedStay) {
		return s.manager(r, sub)
	}
	return libraryManager(r, sub, converter{s.schemas, &emptied{r, schema, live}})
}
