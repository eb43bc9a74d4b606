// Package history answers the group history.rowlock.dev: the writes of one object, the object as
// one of them left it, what changed between two, and which revision held at a time.
//
//	history.go   the handlers
//	target.go    the object whose past is asked for, and the right to see it
//	namespace.go what was in an earlier namespace of the same name
//	states.go    finding a write by its revision or by a time
//	pages.go     lists; continue.go their tokens
//	tell.go      from a write to its description
//	diff.go      what changed between two
//
// It promises: nothing of the past of an object is read for a client that an authorizer does
// not allow to get that very object now, besides what it is asked about the revisions; who
// may not gets the refusal of such a get, whether the object is there, was there, or never was.
// What a request costs is bounded by the constants of pages.go and diff.go and by the gate of the
// handler, and ends with the request. It starts no goroutine.
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

// Config is what the handlers need besides what every verb has.
type Config struct {
	Authorizer authx.Authorizer
	// Merging gives what a merge knows of an object, which tells what tells the items of its lists
	// apart; nil: nothing is known of lists.
	Merging func(obj runtime.Object) (history.Schema, error)
}

// Handlers are the specials for verbs.Handler.Special. They answer for resources that are in the
// catalogue, and are of no effect for others.
func Handlers(c Config) map[string]verbs.Special {
	t := &teller{c}
	of := "." + history.GroupVersion.Group
	all := map[string]verbs.Special{kindshistory.Moments + of: t.moment}
	for _, plural := range []string{kindshistory.Revisions, kindshistory.ClusterRevisions} {
		all[plural+of] = t.revisions
		all[plural+of+"/"+kindshistory.Diff] = t.diff
	}
	return all
}

type teller struct{ Config }

// revisions answers a get and a list of them.
func (t *teller) revisions(h *verbs.Handler, c *verbs.Call) error {
	if c.Info.Name == "" || c.Info.NameFromSelector {
		return t.list(h, c)
	}
	return t.get(h, c)
}

// get answers with one write and what it wrote.
func (t *teller) get(h *verbs.Handler, c *verbs.Call) error {
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
	r, err := o.tell(c.R.Context(), s.write, s.before, true)
	if err != nil {
		return err
	}
	r.SetGroupVersionKind(c.Resource.GVK())
	return h.Answers.Made(&c.Request, form, http.StatusOK, []kinds.Object{r}, r)
}

// moment answers with the revision that held at a time.
func (t *teller) moment(h *verbs.Handler, c *verbs.Call) error {
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
	return h.Answers.Made(&c.Request, form, http.StatusOK, []kinds.Object{m}, m)
}
