package verbs

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/writes"
)

// delete serves DELETE of an object.
func (h *Handler) delete(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	options, err := h.deleteOptions(c)
	if err != nil {
		return err
	}
	req := c.Write(options, "", options.DryRun)
	unread, err := h.mayDeleteUnread(c, req, options)
	if err != nil {
		return err
	}
	if f := c.Resource.Storage.Undeletable; f != nil {
		if why := f(c.Info.Name); why != "" {
			return apierrors.NewForbidden(c.Resource.GroupResource(), c.Info.Name, errors.New(why))
		}
	}
	if err := h.holdLive(c, h.liveSize(c)); err != nil {
		return err
	}
	out, err := h.Writes.Delete(c.R.Context(), req, &writes.Deletion{Name: c.Info.Name, Options: options, Unread: unread})
	if err != nil {
		return err
	}
	code := http.StatusOK
	if !out.Gone && options.OrphanDependents != nil && !*options.OrphanDependents {
		code = http.StatusAccepted
	}
	if out.Gone && (out.Object == nil || !c.Resource.Storage.ReturnDeletedObject) {
		return h.Answers.Object(&c.Request, form, code, deletedStatus(c, out))
	}
	return h.Answers.Written(&c.Request, form, code, out.Item, out.Object)
}

// deletedStatus returns the answer for kinds that do not return the deleted object.
func deletedStatus(c *Call, out *writes.Outcome) *metav1.Status {
	st := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	if out.Object == nil {
		st.Code = http.StatusOK
		st.Details = &metav1.StatusDetails{Name: c.Info.Name, Kind: c.Resource.Kind}
		return st
	}
	st.Details = &metav1.StatusDetails{
		Name: out.Object.GetName(), Group: c.Resource.Group, Kind: c.Resource.Plural, UID: out.Object.GetUID(),
	}
	return st
}

// deleteOptions reads the options from the body or, without a body, from the query. dryRun in the query counts with any body.
func (h *Handler) deleteOptions(c *Call) (*metav1.DeleteOptions, error) {
	body, err := h.Body(c)
	if err != nil {
		return nil, err
	}
	var o *metav1.DeleteOptions
	if len(body) > 0 {
		if o, err = h.decodeDeleteOptions(c, body); err == nil && len(o.DryRun) == 0 {
			o.DryRun = dryRun(c.Info.Query)
		}
	} else {
		o, err = deleteQuery(c.Info.Query)
	}
	if err != nil {
		return nil, err
	}
	if !h.Enabled(unsafeDelete) {
		o.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	return o, c.invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(o))
}

func (h *Handler) decodeDeleteOptions(c *Call, body []byte) (*metav1.DeleteOptions, error) {
	mediaType, err := codecs.BodyType(c.R.Header.Get("Content-Type"), h.Answers.Forms.Types())
	if err != nil {
		return nil, err
	}
	from, o := h.Answers.Forms.Codec(mediaType), &metav1.DeleteOptions{}
	if err := h.weigh(c, from, body, o); err != nil {
		return nil, err
	}
	unreadable := func(err error) error {
		if h.Catalogue.Release().Has(release.BadRequests) {
			return apierrors.NewBadRequest(err.Error())
		}
		return status.Plain(err.Error())
	}
	gvk, err := from.Kind(body)
	if err != nil {
		return nil, unreadable(err)
	}
	if err := noOptions(gvk); err != nil {
		return nil, unreadable(err)
	}
	if _, err := from.Decode(body, o, codecs.Ignore); err != nil {
		return nil, unreadable(err)
	}
	if a := c.Scope.Audit; a != nil {
		if gvk.Empty() {
			gvk = metav1.SchemeGroupVersion.WithKind("DeleteOptions")
		}
		o.SetGroupVersionKind(gvk)
		a.RequestObject(o)
	}
	return o, nil
}

// noOptions refuses a body of another kind. Clients may send options in any group.
func noOptions(gvk schema.GroupVersionKind) error {
	switch gvk.Kind {
	case "", "DeleteOptions":
		return nil
	case "CreateOptions", "UpdateOptions", "Status": // known in every version
		return fmt.Errorf("converting (v1.%s) to (v1.DeleteOptions): unknown conversion", gvk.Kind)
	}
	if gvk.GroupVersion().Empty() {
		gvk.Group, gvk.Version = metav1.GroupName, "v1"
	}
	return fmt.Errorf("no kind %q is registered for version %q in scheme %q", gvk.Kind, gvk.GroupVersion(),
		"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27")
}

// unsafeDelete is the feature gate for deletes of objects that cannot be read.
const unsafeDelete = "AllowUnsafeMalformedObjectDeletion"

func ignoresReadErrors(o *metav1.DeleteOptions) bool {
	v := o.IgnoreStoreReadErrorWithClusterBreakingPotential
	return v != nil && *v
}

// mayDeleteUnread returns the permit to delete an object that cannot be read, if the request wants that and the user may.
func (h *Handler) mayDeleteUnread(c *Call, req *writes.Request, o *metav1.DeleteOptions) (permits.Permit, error) {
	if !ignoresReadErrors(o) {
		return permits.Permit{}, nil
	}
	c.Scope.Annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "")
	return h.Writes.AuthorizeUnread(c.Context(), req)
}

// noUnreadCollections refuses to delete collections with objects that cannot be read.
func noUnreadCollections(c *Call, o *metav1.DeleteOptions) error {
	if !ignoresReadErrors(o) {
		return nil
	}
	return c.invalidOptions("DeleteOptions", field.ErrorList{
		field.Invalid(field.NewPath(writes.UnreadOption), true, "is not allowed with DELETECOLLECTION, try again after removing the option"),
	})
}
