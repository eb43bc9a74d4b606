package verbs

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
)

// list answers with a collection, or a page of it.
func (h *Handler) list(c *Call) error {
	o, invalid := parseList(c, false, h.Feature)
	form, err := h.Answers.NegotiateList(&c.Request, invalid)
	if err != nil {
		return err
	}
	if err := readSelectors(c, o); err != nil {
		return err
	}
	o.AllNamespaces = func() (bool, error) { return h.allNamespaces(c) }
	p, err := h.Objects.List(c.Context(), c.Permit(), c.Resource, o)
	if err != nil {
		return err
	}
	defer p.End()
	return h.Answers.Page(&c.Request, form, p)
}

// parseList reads the parameters of a list or watch, and leaves the selectors to readSelectors.
func parseList(c *Call, watch bool, feature func(string) bool) (*objects.ListOptions, error) {
	o := &objects.ListOptions{User: c.Request.User(), Waiting: c.Request.Scope.Waiting}
	var v1 metav1.ListOptions
	if c.Info.Query != nil {
		if err := metav1.Convert_url_Values_To_v1_ListOptions(&c.Info.Query, &v1, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	var err error
	if o.LabelSelector, err = c.Info.Labels(); err != nil {
		return nil, apierrors.NewBadRequest(status.Selector(c.Resource.Release, err))
	}
	if o.FieldSelector, err = c.Info.Fields(); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	// Paths below /watch/ are watches whatever the query, but only the query decides how options are checked and which
	// defaults they have.
	o.Watch = watch && (v1.Watch || !c.Info.WatchPrefix)
	o.AllowWatchBookmarks = v1.AllowWatchBookmarks
	o.ResourceVersion, o.ResourceVersionMatch = v1.ResourceVersion, v1.ResourceVersionMatch
	o.TimeoutSeconds, o.Limit, o.Continue = v1.TimeoutSeconds, v1.Limit, v1.Continue
	o.SendInitialEvents = v1.SendInitialEvents
	initial := feature == nil || feature("WatchList")
	internalversion.SetListOptionsDefaults(&o.ListOptions, initial)
	if errs := listvalidation.ValidateListOptions(&o.ListOptions, initial); len(errs) > 0 {
		return nil, c.invalidOptions("ListOptions", errs)
	}
	o.SnapshotPages = feature != nil && feature("ListFromCacheSnapshot")
	if feature != nil && feature("ShardedListAndWatch") {
		o.ShardSelector = v1.ShardSelector
	}
	o.ReadRevision()
	if !c.Info.NameFromSelector {
		o.Name = c.Info.Name
	}
	if c.Resource.Namespaced {
		o.Namespace = c.Info.Namespace
	}
	return o, nil
}

// ReadList reads and checks the parameters of a list for a Special, without its selectors.
func (h *Handler) ReadList(c *Call) (*objects.ListOptions, error) {
	return parseList(c, false, h.Feature)
}

// readSelectors makes the filter of the selectors, and drops these: they may have megabytes, and a watch lasts.
func readSelectors(c *Call, o *objects.ListOptions) error {
	if err := o.Select(c.Resource); err != nil {
		return err
	}
	c.Info.Release()
	return nil
}

// AllNamespaces reports whether the user may do in all namespaces, with objects of a resource or with those of one name, what the
// request does in one. A namespace that was deleted and created again may belong to another user, so rights in it do not cover
// objects of the earlier one, but rights in all namespaces do.
func (h *Handler) AllNamespaces(c *Call, r *kinds.Resource, verb, name string) (bool, error) {
	if h.Writes == nil || h.Writes.Authorizer == nil {
		return false, nil
	}
	p, _, err := permits.Authorize(c.R.Context(), h.Writes.Authorizer, &authx.Attributes{
		User: c.User, Verb: verb, ResourceRequest: true, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Plural, Name: name,
	})
	if err != nil && !p.Valid() {
		return false, apierrors.NewInternalError(err)
	}
	return p.Valid(), nil
}

func (h *Handler) allNamespaces(c *Call) (bool, error) {
	permit := c.Permit()
	return h.AllNamespaces(c, c.Resource, c.Info.Verb, permit.Only())
}

// sameNamespace refuses a watch that begins in an earlier namespace of the same name, as if its revision were gone.
func (h *Handler) sameNamespace(c *Call, o *objects.ListOptions) error {
	revision, err := o.Revision(false)
	if err != nil || revision == 0 || o.InitialEvents() || revision >= h.Objects.NamespaceCreated(o.Namespace) {
		return nil // the error of a revision is reported where it is used
	}
	may, err := h.allNamespaces(c)
	if err == nil && !may {
		err = apierrors.NewResourceExpired(fmt.Sprintf("namespace %s was made anew since resource version %d", o.Namespace, revision))
	}
	return err
}
