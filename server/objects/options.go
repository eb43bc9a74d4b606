package objects

import (
	"errors"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// ListOptions are the parameters of a list or a watch, validated.
type ListOptions struct {
	internalversion.ListOptions

	Namespace string // "" for all
	Name      string // of a watch on one object's path
	Filter    *cache.Filter
	// Everywhere asks whether the user may list the resource in all namespaces, which it takes to
	// see what was in an earlier namespace of the same name. Nil: nobody asks, and may not.
	Everywhere func() (bool, error)

	// SnapshotPages has a page of a cached resource for which any version does be all that is left.
	SnapshotPages bool

	revision int64 // of ResourceVersion; 0 where that is empty or "0"
	badRV    error // why ResourceVersion is none
}

// ReadRevision reads the ResourceVersion of the options. One that is none is refused
// when it is asked for: who meets it depends on what the options are used for.
func (o *ListOptions) ReadRevision() { o.revision, o.badRV = parseRevision(o.ResourceVersion) }

// parseRevision reads a resourceVersion. Those beyond what the store can count are as
// good as its largest.
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

// Revision is the revision asked for, or the refusal of a resourceVersion that is none:
// exact readers and pages meet it as the client's mistake, others as the server's.
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

// LookCloser lets the filter of a custom resource tell what the version shows of an
// object from what is stored of it.
func (o *ListOptions) LookCloser(r *kinds.Resource) {
	if !r.WorksAsServed() {
		return
	}
	relabeled := r.LoadCallsWebhook() && !o.LabelSelector.Empty()
	own := slices.ContainsFunc(o.Filter.Fields, func(t cache.FieldTerm) bool { return t.Index >= 0 })
	if own || relabeled {
		o.Filter.Unsure = func(it *cache.Item) bool { return !Clean(r, it) }
		o.Filter.Relabeled = relabeled
	}
}

// InitialEvents says that a watch begins with the objects that there are, and tells where
// they end.
func (o *ListOptions) InitialEvents() bool { return o.SendInitialEvents != nil && *o.SendInitialEvents }

// SyntheticEvents says that a watch begins with events that nobody caused: always, unless
// it begins at a resource version or does without.
func (o *ListOptions) SyntheticEvents() bool {
	return o.SendInitialEvents == nil || *o.SendInitialEvents
}

// within is the namespace that everything selected is in, "" where it may be in any.
func (o *ListOptions) within(r *kinds.Resource) string {
	if o.Namespace != "" || !r.Namespaced {
		return o.Namespace
	}
	namespace, _ := o.FieldSelector.RequiresExactMatch("metadata.namespace")
	return namespace
}

// single says that the selection is one object by its name. A token goes on in a
// collection, whatever is selected from it.
func (o *ListOptions) single(r *kinds.Resource) bool {
	if o.Continue != "" || r.Namespaced && o.within(r) == "" {
		return false
	}
	_, ok := o.FieldSelector.RequiresExactMatch("metadata.name")
	return ok
}

// paged says that the answer may be cut into pages.
func (o *ListOptions) paged(r *kinds.Resource) bool {
	return (o.Limit > 0 || o.Continue != "") && !o.single(r)
}
