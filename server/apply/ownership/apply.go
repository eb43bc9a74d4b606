package ownership

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/server/kinds"
)

// Apply merges a server-side apply patch (YAML or JSON) into live, or into nothing
// where live is nil, and records manager as the owner of what it applied. The result
// is neither defaulted nor validated; live is not changed.
//
// Errors: 400 for a patch that is no object of r's kind; 409 with one cause a field
// for fields that others own, unless force is set; 413 for what would take the library too
// long; plain errors, 500 to clients, for fields that the kind does not have.
func (m *FieldManager) Apply(r *kinds.Resource, sub string, live kinds.Object, patch []byte, manager string, force bool, now time.Time) (kinds.Object, error) {
	tree, err := ReadTree(patch)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = r.New()
	}
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
	merger, err := m.standard.manager(r, sub)
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
