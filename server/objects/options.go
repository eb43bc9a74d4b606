package objects

import (
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/shard"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// ListOptions are the parameters of a list or a watch, validated.
type ListOptions struct {
	internalversion.ListOptions

	User string // whose lists take turns with those of others to read earlier states
	// Waiting calls wait, which waits for the lists of others; nil: the list does so itself.
	Waiting   func(wait func() error) error
	Namespace string // "" for all
	Name      string // of a watch on one object's path
	Filter    *cache.Filter
	// AllNamespaces reports whether the user may list the resource in all namespaces, which the state before the
	// namespace was recreated requires. Nil: no.
	AllNamespaces func() (bool, error)

	// SnapshotPages keeps a state of a cached resource for the pages that follow a page read at any version.
	SnapshotPages bool

	revision int64 // of ResourceVersion; 0 if that is empty or "0"
	badRV    error // why ResourceVersion is invalid
}

// ReadRevision parses the ResourceVersion of the options. An invalid one is refused when it is used, because
// the answer depends on the use.
func (o *ListOptions) ReadRevision() { o.revision, o.badRV = parseRevision(o.ResourceVersion) }

// parseRevision parses a resourceVersion. Values above the store's largest revision count as that.
func parseRevision(s string) (int64, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errors.New(field.Invalid(field.NewPath("resourceVersion"), s, err.Error()).Error())
	}
	return int64(min(n, 1<<63-1)), nil
}

// Revision returns the requested revision, or the error for an invalid one: exact reads and pages answer 400,
// others 500.
func (o *ListOptions) Revision(exact bool) (int64, error) {
	switch {
	case o.badRV == nil:
		return o.revision, nil
	case exact:
		return 0, badVersion(o.badRV)
	}
	return 0, status.Plain(o.badRV.Error())
}

func badVersion(err error) error {
	return apierrors.NewBadRequest("invalid resource version: " + err.Error())
}

// Select makes the filter of the selectors for a resource, and drops those that it replaces.
func (o *ListOptions) Select(r *kinds.Resource) error {
	var terms []cache.FieldTerm
	own := false // a term for a field other than name and namespace
	for _, q := range o.FieldSelector.Requirements() {
		index, err := fieldIndex(r, q.Field)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		own = own || index >= 0
		terms = append(terms, cache.FieldTerm{Index: index, Value: q.Value, Not: q.Operator != "=" && q.Operator != "=="})
	}
	if o.Name != "" && !o.FieldSelector.Empty() {
		if name, ok := o.FieldSelector.RequiresExactMatch("metadata.name"); !ok || name != o.Name {
			return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	o.Filter = cache.NewFilter(o.LabelSelector, terms)
	if o.ShardSelector != "" {
		var err error
		if o.Filter.Shard, err = shard.Parse(o.ShardSelector); err != nil {
			return status.Plain("invalid shard selector: " + err.Error())
		}
	}
	if relabeled := r.LoadCallsWebhook() && !o.LabelSelector.Empty(); r.WorksAsServed() && (own || relabeled) {
		// The requested version of a custom resource may differ from the stored one.
		o.Filter.Unsure = func(it *cache.Item) bool { return !Clean(r, it) }
		o.Filter.Relabeled = relabeled
	}
	o.ShardSelector, o.LabelSelector = "", nil
	return nil
}

// fieldIndex finds a field selector label of a resource.
func fieldIndex(r *kinds.Resource, label string) (int, error) {
	own := r.OwnLabels()
	switch label {
	case "metadata.name":
		return cache.FieldName, nil
	case "metadata.namespace":
		if r.Namespaced || !own {
			return cache.FieldNamespace, nil
		}
	}
	stored := r.StoredLabel(label)
	for i := range r.Storage.Fields {
		if stored != "" && r.Storage.Fields[i].Label == stored {
			return i, nil
		}
	}
	if r.FieldRefusal != "" {
		return 0, fmt.Errorf(r.FieldRefusal, label)
	}
	if own {
		return 0, fmt.Errorf("field label not supported: %s", label)
	}
	return 0, fmt.Errorf("%q is not a known field selector: only %q, %q", label, "metadata.name", "metadata.namespace")
}

// InitialEvents reports whether a watch begins with the existing objects, and marks their end.
func (o *ListOptions) InitialEvents() bool { return o.SendInitialEvents != nil && *o.SendInitialEvents }

// SyntheticEvents reports whether a watch begins with events for existing objects: always, unless it begins
// at a resource version or declines them.
func (o *ListOptions) SyntheticEvents() bool {
	return o.SendInitialEvents == nil || *o.SendInitialEvents
}

// within returns the namespace of all selected objects, "" if they may be in any.
func (o *ListOptions) within(r *kinds.Resource) string {
	if o.Namespace != "" || !r.Namespaced {
		return o.Namespace
	}
	namespace, _ := o.FieldSelector.RequiresExactMatch("metadata.namespace")
	return namespace
}

// single reports whether the selection is one object by name. A continue token belongs to a collection,
// whatever is selected from it.
func (o *ListOptions) single(r *kinds.Resource) bool {
	if o.Continue != "" || r.Namespaced && o.within(r) == "" {
		return false
	}
	_, ok := o.FieldSelector.RequiresExactMatch("metadata.name")
	return ok
}

// paged reports whether the answer may be divided into pages.
func (o *ListOptions) paged(r *kinds.Resource) bool {
	return (o.Limit > 0 || o.Continue != "") && !o.single(r)
}
