package verbs

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/watches"
)

// watch streams the changes of a collection or of one object. It stands on the stack of
// every watch whose handler stays: what comes before belongs into newWatch.
func (h *Handler) watch(c *Call) error {
	w, err := h.newWatch(c)
	if err != nil {
		return err
	}
	return w.Serve()
}

// refuseWatch answers a watch of a resource that can be listed and not watched, once its parameters
// are looked at.
func (h *Handler) refuseWatch(c *Call) error {
	if _, _, err := h.readWatch(c); err != nil {
		return err
	}
	return apierrors.NewMethodNotSupported(c.Resource.GroupResource(), "watch")
}

// readWatch reads the parameters of a watch, but not its selectors, and the form of its answer.
func (h *Handler) readWatch(c *Call) (o *objects.ListOptions, form codecs.Form, err error) {
	if err = h.Answers.AcceptsList(&c.Request); err != nil {
		return
	}
	if o, err = h.parseList(c, true); err != nil {
		return
	}
	form, err = h.Answers.NegotiateWatch(&c.Request, !(o.InitialEvents() && o.AllowWatchBookmarks))
	return
}

// newWatch reads what is to be watched, and in which form.
func (h *Handler) newWatch(c *Call) (none watches.Watch, err error) {
	o, form, err := h.readWatch(c)
	if err != nil {
		return none, err
	}
	if err := readSelectors(c, o); err != nil {
		return none, err
	}
	if err := h.ofThisNamespace(c, o); err != nil {
		return none, err
	}
	return h.Watches.New(&c.Request, o, form)
}
