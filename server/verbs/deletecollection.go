package verbs

import (
	"cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/writes"
)

// deleteCollection deletes the objects of a list with the same parameters, one after the other, and answers with the list.
func (h *Handler) deleteCollection(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	o, err := parseList(c, false, h.Feature)
	if err != nil {
		return err
	}
	if err := readSelectors(c, o); err != nil {
		return err
	}
	options, err := h.deleteOptions(c)
	if err != nil {
		return err
	}
	if err := noUnreadCollections(c, options); err != nil {
		return err
	}
	req := c.Write(options, "", options.DryRun)
	writes.WarnOrphans(req, options)
	o.Limit = cmp.Or(o.Limit, wholeCollection)
	p, err := h.Objects.List(c.Context(), c.Permit(), c.Resource, o)
	if err != nil {
		return err
	}
	defer p.End()
	marked := &writes.AlreadyDeleting{}
	if err := h.deleteItems(c, req, options, p.Items, marked); err != nil {
		return err
	}
	changed, err := h.Writes.Unconfirmed(c.R.Context(), req, marked)
	if err != nil {
		return err
	}
	// These objects are newer than the request, so their later changes do not matter.
	if err := h.deleteItems(c, req, options, changed, &writes.AlreadyDeleting{}); err != nil {
		return err
	}
	return h.Answers.Page(&c.Request, form, p)
}

// deleteItems deletes some items. marked takes those that are marked for deletion already: the head of all
// writes, which a repeated delete must know of, is read once for all of them.
func (h *Handler) deleteItems(c *Call, req *writes.Request, options *metav1.DeleteOptions, items []*cache.Item, marked *writes.AlreadyDeleting) error {
	for _, item := range items {
		if err := c.Context().Err(); err != nil {
			return err
		}
		if err := h.holdLive(c, item.Size()); err != nil {
			return err
		}
		_, err := h.Writes.Delete(c.R.Context(), req, &writes.Deletion{Name: item.Name, Options: options, Marked: marked})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// wholeCollection is a limit that no collection reaches: stock servers delete in pages, so resourceVersion means the same as in
// a list with a limit.
const wholeCollection = 1 << 40
