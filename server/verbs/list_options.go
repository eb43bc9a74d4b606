package verbs

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// parseList reads the parameters of a list or watch, but not its selectors.
func (h *Handler) parseList(c *Call, watch bool) (*objects.ListOptions, error) {
	o := &objects.ListOptions{}
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
	initial := h.Feature == nil || h.Feature("WatchList")
	internalversion.SetListOptionsDefaults(&o.ListOptions, initial)
	if errs := listvalidation.ValidateListOptions(&o.ListOptions, initial); len(errs) > 0 {
		return nil, invalidOptions("ListOptions", errs)
	}
	o.ReadRevision()
	if c.Resource.Namespaced {
		o.Namespace = c.Info.Namespace
	}
	return o, nil
}

// ReadList reads and checks the parameters of a list that a Special answers, but not its
// selectors.
func (h *Handler) ReadList(c *Call) (*objects.ListOptions, error) { return h.parseList(c, false) }

// readSelectors translates the selectors into a filter of the storage.
func readSelectors(c *Call, o *objects.ListOptions) error {
	var terms []cache.FieldTerm
	for _, r := range o.FieldSelector.Requirements() {
		index, err := fieldIndex(c.Resource, r.Field)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		terms = append(terms, cache.FieldTerm{Index: index, Value: r.Value, Not: r.Operator != "=" && r.Operator != "=="})
	}
	if c.Info.Name != "" && !c.Info.NameFromSelector {
		o.Name = c.Info.Name
		if !o.FieldSelector.Empty() {
			if name, ok := o.FieldSelector.RequiresExactMatch("metadata.name"); !ok || name != o.Name {
				return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
			}
		}
	}
	o.Filter = cache.NewFilter(o.LabelSelector, terms)
	o.LookCloser(c.Resource)
	o.LabelSelector = nil // it may be of megabytes, and a watch lasts
	c.Info.Release()
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
