package verbs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// listOptions are the parameters of a list or a watch, validated.
type listOptions struct {
	internalversion.ListOptions

	namespace string // "" for all
	name      string // of a watch on one object's path
	filter    *cache.Filter
	revision  int64 // of ResourceVersion; 0 where that is empty or "0"
	badRV     error // why ResourceVersion is no version
}

// parseList reads the parameters of a list or watch, but not its selectors.
func parseList(c *Call, watch bool) (*listOptions, error) {
	o := &listOptions{}
	var v1 metav1.ListOptions
	if c.Info.Query != nil {
		if err := metav1.Convert_url_Values_To_v1_ListOptions(&c.Info.Query, &v1, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	var err error
	if o.LabelSelector, err = c.Info.Labels(); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if o.FieldSelector, err = c.Info.Fields(); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	// Paths below /watch/ are watched whatever the query says, but what the options
	// are checked as, and default to, is for the query alone to say.
	o.Watch = watch && (v1.Watch || !c.Info.WatchPrefix)
	o.AllowWatchBookmarks = v1.AllowWatchBookmarks
	o.ResourceVersion, o.ResourceVersionMatch = v1.ResourceVersion, v1.ResourceVersionMatch
	o.TimeoutSeconds, o.Limit, o.Continue = v1.TimeoutSeconds, v1.Limit, v1.Continue
	o.SendInitialEvents = v1.SendInitialEvents
	internalversion.SetListOptionsDefaults(&o.ListOptions, true)
	if errs := listvalidation.ValidateListOptions(&o.ListOptions, true); len(errs) > 0 {
		return nil, invalidOptions("ListOptions", errs)
	}
	o.revision, o.badRV = parseRevision(o.ResourceVersion)
	if c.Resource.Namespaced {
		o.namespace = c.Info.Namespace
	}
	return o, nil
}

// CheckList checks the parameters of a list that is not read from the store.
func CheckList(c *Call) error {
	_, err := parseList(c, false)
	return err
}

// parseRevision reads a resourceVersion. Those beyond what the store can count are
// as good as its largest.
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

// selectors translates the selectors into a filter of the storage.
func (o *listOptions) selectors(c *Call) error {
	var terms []cache.FieldTerm
	for _, r := range o.FieldSelector.Requirements() {
		index, err := fieldIndex(c.Resource, r.Field)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		terms = append(terms, cache.FieldTerm{Index: index, Value: r.Value, Not: r.Operator != "=" && r.Operator != "=="})
	}
	if c.Info.Name != "" && !c.Info.NameFromSelector {
		o.name = c.Info.Name
		if !o.FieldSelector.Empty() {
			if name, ok := o.FieldSelector.RequiresExactMatch("metadata.name"); !ok || name != o.name {
				return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
			}
		}
	}
	o.filter = cache.NewFilter(o.LabelSelector, terms)
	if c.Resource.Custom {
		o.closer(c.Resource)
	}
	o.LabelSelector = nil // it may be of megabytes, and a watch lasts
	c.Info.Release()
	return nil
}

// closer lets the filter tell what a custom resource's version shows of an object from
// what is stored of it.
func (o *listOptions) closer(r *kinds.Resource) {
	relabeled := r.Schema.Asks() && !o.LabelSelector.Empty()
	own := slices.ContainsFunc(o.filter.Fields, func(t cache.FieldTerm) bool { return t.Index >= 0 })
	if own || relabeled {
		o.filter.Unsure = func(it *cache.Item) bool { return !clean(r, it) }
		o.filter.Relabeled = relabeled
	}
}

// fieldIndex finds a field selector label of a resource.
func fieldIndex(r *kinds.Resource, label string) (int, error) {
	own := r.Custom || len(r.Storage.Fields) > 0
	switch label {
	case "metadata.name":
		return cache.FieldName, nil
	case "metadata.namespace":
		if r.Namespaced || !own {
			return cache.FieldNamespace, nil
		}
	}
	stored := label
	if r.FieldLabels != nil {
		stored = r.FieldLabels[label]
	}
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

// within is the namespace that everything selected is in, "" where it may be in any.
func (o *listOptions) within(r *kinds.Resource) string {
	if o.namespace != "" || !r.Namespaced {
		return o.namespace
	}
	namespace, _ := o.FieldSelector.RequiresExactMatch("metadata.namespace")
	return namespace
}

// single says that the selection is one object by its name. A token goes on in a
// collection, whatever is selected from it.
func (o *listOptions) single(r *kinds.Resource) bool {
	if o.Continue != "" || r.Namespaced && o.within(r) == "" {
		return false
	}
	_, ok := o.FieldSelector.RequiresExactMatch("metadata.name")
	return ok
}

// paged says that the answer may be cut into pages.
func (o *listOptions) paged(r *kinds.Resource) bool {
	return (o.Limit > 0 || o.Continue != "") && !o.single(r)
}

// version gives the revision asked for, or the refusal of one that is none: exact
// readers and pages meet it as the client's mistake, others as the server's.
func (o *listOptions) version(exact bool) (int64, error) {
	switch {
	case o.badRV == nil:
		return o.revision, nil
	case exact:
		return 0, apierrors.NewBadRequest("invalid resource version: " + o.badRV.Error())
	}
	return 0, status.Plain(o.badRV.Error())
}
