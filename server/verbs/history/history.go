// Package history serves the group history.rowlock.dev: the writes of an object, the object after one of
// them, the difference between two states, and the revision at a time.
//
//	history.go   the handlers
//	target.go    the object, and the right to read it
//	namespace.go states from before a namespace was recreated
//	states.go    finding a write by its revision or by a time
//	pages.go     lists; continue.go their tokens
//	describe.go  from a write to its description
//	diff.go      differences between two states
//
// The handlers read nothing of an object's past, apart from revision numbers, before an authorizer allows the
// client to get that object now. Otherwise the answer is that of a refused get, whether or not the object
// exists or existed. The cost of a request is bounded by the constants of pages.go and diff.go and by the
// gate of the handler, and ends with the request. The package starts no goroutine.
package history

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/kinds"
	kindshistory "github.com/rowlock/rowlock/server/kinds/history"
	"github.com/rowlock/rowlock/server/verbs"
)

// Config configures the handlers.
type Config struct {
	Authorizer authx.Authorizer
	// Merging returns the merge schema of an object, which has the keys of list items; nil: lists have no
	// known keys.
	Merging func(obj runtime.Object) (history.Schema, error)
}

// Handlers returns the specials for verbs.Handler.Special. They apply to resources of the catalogue; others are
// ignored.
func Handlers(c Config) map[string]verbs.Special {
	t := &handlers{c}
	of := "." + history.GroupVersion.Group
	all := map[string]verbs.Special{kindshistory.Moments + of: t.moment}
	for _, plural := range []string{kindshistory.Revisions, kindshistory.ClusterRevisions} {
		all[plural+of] = t.revisions
		all[plural+of+"/"+kindshistory.Diff] = t.diff
	}
	return all
}

type handlers struct{ Config }

// revisions serves a get and a list of revisions.
func (t *handlers) revisions(h *verbs.Handler, c *verbs.Call) error {
	if c.Info.Name == "" || c.Info.NameFromSelector {
		return t.list(h, c)
	}
	return t.get(h, c)
}

// get returns one write and the object that it wrote.
func (t *handlers) get(h *verbs.Handler, c *verbs.Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	name, err := history.ParseName(c.Info.Name)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	o, err := t.open(h, c, name.Resource, name.Name)
	if err != nil {
		return err
	}
	s, err := o.at(c.R.Context(), name.State, pair)
	if err != nil {
		return err
	}
	if s.write == nil {
		return apierrors.NewNotFound(c.Resource.GroupResource(), c.Info.Name)
	}
	r, err := o.describe(c.R.Context(), s.write, s.before, true)
	if err != nil {
		return err
	}
	r.SetGroupVersionKind(c.Resource.GVK())
	return h.Answers.Generated(&c.Request, form, http.StatusOK, []kinds.Object{r}, r)
}

// moment returns the revision at a time.
func (t *handlers) moment(h *verbs.Handler, c *verbs.Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	ctx := c.R.Context()
	m := &history.Moment{ObjectMeta: metav1.ObjectMeta{Name: c.Info.Name}}
	m.SetGroupVersionKind(c.Resource.GVK())
	revision, oldest, err := t.revisionOf(ctx, h, c.Info.Name)
	if err != nil {
		return err
	}
	m.Revision, m.Oldest = number(revision), number(max(oldest, 1))
	if written, ok := h.Objects.WrittenAt(ctx, revision); ok {
		m.WrittenAt = &metav1.MicroTime{Time: written}
	}
	return h.Answers.Generated(&c.Request, form, http.StatusOK, []kinds.Object{m}, m)
}
