package verbs

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/watches"
)

// watch streams the changes of a collection or of one object. Its frame stays on the stack of every watch whose handler stays,
// so everything before Serve is in newWatch.
func (h *Handler) watch(c *Call) error {
	w, err := h.newWatch(c)
	if err != nil {
		return err
	}
	return w.Serve()
}

// refuseWatch answers a watch of a resource that can be listed but not watched. Its parameters are checked before.
func (h *Handler) refuseWatch(c *Call) error {
	if _, _, err := h.readWatch(c); err != nil {
		return err
	}
	return apierrors.NewMethodNotSupported(c.Resource.GroupResource(), "watch")
}

// readWatch reads the parameters of a watch, without its selectors, and the form of its answer.
func (h *Handler) readWatch(c *Call) (o *objects.ListOptions, form codecs.Form, err error) {
	o, invalid := parseList(c, true, h.Feature)
	tables := invalid != nil || h.Answers.NoBlueprints || !o.InitialEvents() || !o.AllowWatchBookmarks
	form, err = h.Answers.NegotiateWatch(&c.Request, tables, invalid)
	return o, form, err
}

// newWatch reads the parameters and the form of a watch.
func (h *Handler) newWatch(c *Call) (none watches.Watch, err error) {
	o, form, err := h.readWatch(c)
	if err == nil {
		err = readSelectors(c, o)
	}
	if err == nil {
		err = h.sameNamespace(c, o)
	}
	if err != nil {
		return none, err
	}
	return h.Watches.New(&c.Request, o, form)
}
