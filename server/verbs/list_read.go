package verbs

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/vault"
	"github.com/rowlock/rowlock/sqlstore"
)

// A reader that names a version the server has not reached waits this long for it.
const futureWait = 3 * time.Second

const (
	listExpired = "The resourceVersion for the provided list is too old."

	pageExpired = "The provided continue parameter is too old to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with " +
		"the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the " +
		"first chunk was returned and now may show up in the list."
)

// page is what a list found.
type page struct {
	revision  int64
	items     []*cache.Item
	next      string // continue token
	remaining int64  // -1 where it is not told
}

// reach waits until memory has a revision, for a while.
func (h *Handler) reach(ctx context.Context, revision int64) error {
	if h.Store.Revision() >= revision {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, futureWait)
	defer cancel()
	err := h.Store.WaitFor(short, revision)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return status.Future(revision, h.Store.Revision())
	}
	return err
}

// query is a list with its version and place resolved.
type query struct {
	permit    permits.Permit
	resource  *kinds.Resource
	namespace string
	filter    *cache.Filter
	spans     bool // over namespaces
	from      cache.Position
	exact     int64 // revision to read at; 0: the newest
	token     bool  // goes on from a token
	limit     int   // 0: none
	tell      bool  // what remains may be told
	view      *view // of the version that is asked for
}

// read finds what a list asks for.
func (h *Handler) read(c *Call, o *listOptions) (*page, error) {
	q := query{
		permit: c.Permit(), resource: c.Resource, namespace: o.within(c.Resource), filter: o.filter,
		spans: c.Resource.Namespaced && o.namespace == "",
		tell:  o.filter.Everything(),
		view:  h.view(c.Context(), c.Resource, codecs.Form{}),
	}
	paged := o.paged(c.Resource)
	if paged && o.Limit > 0 {
		q.limit = int(o.Limit)
	}
	ctx := c.R.Context()
	if paged && o.Continue != "" {
		revision, from, err := decodeContinue(o.Continue, o.namespace, q.spans)
		if err != nil {
			return nil, err
		}
		if o.ResourceVersion != "" && o.ResourceVersion != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		q.from, q.token = from, true
		if q.spans && from.Namespace != q.namespace {
			q.namespace = "" // the token is of another walk
		}
		if revision > 0 {
			q.exact = revision
		}
	} else if err := h.resolve(ctx, o, paged, &q); err != nil {
		return nil, err
	}
	if q.exact > 0 {
		return h.readAt(ctx, &q)
	}
	if q.token || o.ResourceVersion == "" {
		if err := h.catchUp(ctx); err != nil {
			return nil, err
		}
	}
	view, err := h.Store.List(q.permit, q.place())
	if err != nil {
		return nil, err
	}
	return q.take(ctx, view)
}

// place is the collection that is read.
func (q *query) place() vault.Place {
	return vault.Place{Resource: q.resource, Namespace: q.namespace}
}

// resolve settles the version of a list that does not go on from a token.
func (h *Handler) resolve(ctx context.Context, o *listOptions, paged bool, q *query) error {
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	revision, err := o.version(exact || o.Limit > 0)
	if err != nil {
		return err
	}
	switch {
	case o.ResourceVersion == "":
	case o.ResourceVersion == "0":
		q.limit = 0
	case exact || paged && o.ResourceVersionMatch == "":
		q.exact = revision
	case paged:
		return h.reached(ctx, revision)
	default:
		return h.reach(ctx, revision)
	}
	return nil
}

// reached is reach for pages. They are of the most recent state, and who asks for a later
// one has nothing to wait for.
func (h *Handler) reached(ctx context.Context, revision int64) error {
	if h.Store.Revision() >= revision {
		return nil
	}
	if err := h.catchUp(ctx); err != nil {
		return err
	}
	if head := h.Store.Revision(); head < revision {
		e := status.Future(revision, head)
		e.ErrStatus.Details.RetryAfterSeconds = 0
		return e
	}
	return nil
}

// readAt reads at exactly q.exact, from memory if it reaches back so far.
func (h *Handler) readAt(ctx context.Context, q *query) (*page, error) {
	if err := h.reach(ctx, q.exact); err != nil {
		return nil, err
	}
	if floor := h.Store.Floor(); q.exact < floor {
		return nil, q.expired()
	}
	view, err := h.Store.At(q.permit, q.place(), q.exact)
	if err != nil {
		return nil, err
	}
	if view != nil {
		return q.take(ctx, view)
	}
	p, err := h.scan(ctx, q)
	var gone *sqlstore.CompactedError
	if errors.As(err, &gone) {
		return nil, q.expired()
	}
	return p, err
}

// expired is the refusal of a version whose history is gone. Who comes with a
// token gets one that goes on in the newest state.
func (q *query) expired() error {
	if !q.token {
		return apierrors.NewResourceExpired(listExpired)
	}
	e := apierrors.NewResourceExpired(pageExpired)
	e.ErrStatus.ListMeta.Continue = encodeContinue(newestState, q.spans, q.from)
	return e
}

// someItems is how many items a selection is expected to find, at first.
const someItems = 16

// take collects the selected items of a snapshot, at most limit.
func (q *query) take(ctx context.Context, snap *vault.View) (*page, error) {
	p := &page{revision: snap.Revision, remaining: -1}
	more := false
	room := someItems
	if q.limit == 0 && q.tell {
		room = snap.Count(q.from)
	}
	p.items = make([]*cache.Item, 0, room)
	err := q.view.each(ctx, snap, q.filter, q.from, func(it *cache.Item) bool {
		p.items = append(p.items, it)
		more = q.limit > 0 && len(p.items) == q.limit
		return !more
	})
	if err != nil || !more {
		return p, err
	}
	last := p.items[len(p.items)-1]
	rest := snap.Count(cache.After(last.Namespace, last.Name))
	if rest == 0 {
		return p, nil
	}
	snap.Pin()
	q.cut(p, int64(rest))
	return p, nil
}

// cut says that a page is not the last.
func (q *query) cut(p *page, rest int64) {
	last := p.items[len(p.items)-1]
	p.next = encodeContinue(p.revision, q.spans, cache.After(last.Namespace, last.Name))
	if q.tell && rest > 0 {
		p.remaining = rest
	}
}

// scan reads at q.exact from the table. How much remains is not told: it would cost
// as much as reading it.
func (h *Handler) scan(ctx context.Context, q *query) (*page, error) {
	p := &page{revision: q.exact, remaining: -1}
	full := func() bool { return q.limit > 0 && len(p.items) == q.limit }
	s := q.view.sieve(q.filter, func(it *cache.Item) bool {
		p.items = append(p.items, it)
		return !full()
	})
	home := h.home(q.resource.Storage)
	err := h.Store.Scan(ctx, q.permit, q.place(), q.exact, q.from, func(row *sqlstore.Row) bool {
		if full() {
			q.cut(p, 0)
			return false
		}
		if it := cache.NewItem(row, home); q.filter.Match(it) {
			s.add(ctx, it) // one more row says whether a full page is the last
		}
		return s.err == nil && !(full() && len(s.waiting) > 0)
	})
	if err == nil && !full() {
		s.settle(ctx)
	}
	if err == nil {
		err = s.err
	}
	if full() && p.next == "" && len(s.waiting) > 0 {
		q.cut(p, 0)
	}
	return p, err
}
