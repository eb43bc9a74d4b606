package objects

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

const (
	listExpired = "The resourceVersion for the provided list is too old."

	pageExpired = "The provided continue parameter is too old to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with " +
		"the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the " +
		"first chunk was returned and now may show up in the list."
)

// list is a list whose revision and place have been determined.
type list struct {
	permit    permits.Permit
	user      string
	waiting   func(wait func() error) error // see ListOptions
	resource  *kinds.Resource
	namespace string
	filter    *cache.Filter
	spans     bool // all namespaces
	from      cache.Position
	exact     int64 // revision to read at; 0: the newest
	token     bool  // it continues from a token
	limit     int   // 0: none
	counts    bool  // the list may report the number of remaining items
}

// List returns the objects of a resource that the options select. Its errors are API statuses, or those of
// the store and of the conversion of a custom resource.
func (s *Store) List(ctx context.Context, p permits.Permit, r *kinds.Resource, o *ListOptions) (*Page, error) {
	l := &list{
		permit: p, user: o.User, waiting: o.Waiting, resource: r, namespace: o.within(r), filter: o.Filter,
		spans:  r.Namespaced && o.Namespace == "",
		counts: o.Filter.Whole(),
	}
	if l.waiting == nil {
		l.waiting = func(wait func() error) error { return wait() }
	}
	if err := s.resolve(ctx, o, l); err != nil {
		return nil, err
	}
	if l.exact > 0 {
		err := s.Reach(ctx, l.exact)
		if err == nil { // the namespace may have been recreated in the meantime
			err = s.checkNamespace(o, l)
		}
		if err != nil {
			return nil, err
		}
		return s.listAt(ctx, l)
	}
	if l.token || o.ResourceVersion == "" {
		if err := s.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	c, err := s.Collection(l.permit, l.place())
	if err != nil {
		return nil, err
	}
	return s.take(ctx, l, c)
}

// place returns the collection to read.
func (l *list) place() Place {
	return Place{Resource: l.resource, Namespace: l.namespace}
}

// resolve determines the position, revision and length of a list.
func (s *Store) resolve(ctx context.Context, o *ListOptions, l *list) error {
	paged := o.paged(l.resource)
	if paged && o.Limit > 0 && !(o.SnapshotPages && o.Continue != "" && o.ResourceVersion == "0" && !l.resource.Storage.Uncached) {
		l.limit = int(o.Limit)
	}
	if paged && o.Continue != "" {
		return l.readContinue(o)
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	revision, err := o.Revision(exact || o.Limit > 0 && o.ResourceVersionMatch == "" || l.resource.Storage.Uncached || l.resource.Release.Has(release.BadRequests))
	if err != nil {
		return err
	}
	switch {
	case o.ResourceVersion == "":
	case o.ResourceVersion == "0":
		l.limit = 0
	case exact || paged && o.ResourceVersionMatch == "":
		l.exact = revision
	case l.resource.Storage.Uncached || o.Limit > 0 && o.ResourceVersionMatch == "":
		return s.reachNow(ctx, revision)
	default:
		return s.Reach(ctx, revision)
	}
	return nil
}

// readContinue reads the continue token, if there is one.
func (l *list) readContinue(o *ListOptions) error {
	revision, from, err := decodeContinue(o.Continue, o.Namespace, l.spans)
	if err != nil {
		return err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	l.from, l.token = from, true
	if l.spans && from.Namespace != l.namespace {
		l.namespace = "" // a token of another list
	}
	l.exact = max(revision, 0)
	return nil
}

// listAt reads at exactly l.exact, which the cache has reached, from the cache if it still has that state.
func (s *Store) listAt(ctx context.Context, l *list) (*Page, error) {
	// Below the known floor the table decides: just after the start, and after a compaction by another
	// server, only the floor of the log is known, and snapshots may be older. It also refuses what the database has lost,
	// which memory may still have.
	if l.exact >= s.store.PastFloor(l.resource.Storage.Key) && s.store.CheckSkipped(l.exact) == nil {
		c, err := s.CollectionAt(l.permit, l.place(), l.exact)
		if err != nil {
			return nil, err
		}
		if c != nil {
			return s.take(ctx, l, c)
		}
	}
	p, err := s.takeRows(ctx, l)
	var gone *sqlstore.CompactedError
	if errors.As(err, &gone) {
		return nil, l.expired()
	}
	return p, err
}

// checkNamespace refuses states from before the namespace was recreated as compacted history: rights in the
// new namespace do not cover them.
func (s *Store) checkNamespace(o *ListOptions, l *list) error {
	if !l.resource.Namespaced || l.exact >= s.NamespaceCreated(l.namespace) {
		return nil
	}
	if o.AllNamespaces != nil {
		if may, err := o.AllNamespaces(); may || err != nil {
			return err
		}
	}
	return l.expired()
}

// expired returns the error for a compacted revision. For a list with a token it includes a token that continues
// in the newest state.
func (l *list) expired() error {
	if !l.token {
		return apierrors.NewResourceExpired(listExpired)
	}
	e := apierrors.NewResourceExpired(pageExpired)
	e.ErrStatus.ListMeta.Continue = encodeContinue(newestState, l.spans, l.from)
	return e
}

// someItems is the expected number of selected items, initially.
const someItems = 16

// take takes the selected items of a collection in the cache, at most limit.
func (s *Store) take(ctx context.Context, l *list, c *Collection) (*Page, error) {
	p := &Page{Revision: c.Revision, Remaining: -1, Shard: l.filter.ShardText(), Intact: c.Intact()}
	if l.limit == 0 && c.plain(l.resource, l.filter) {
		l.begin(p, c)
		return p, nil
	}
	more := false
	room := someItems
	if l.limit == 0 && l.filter.Everything() {
		room = c.Count(l.from)
	}
	p.Items = make([]*cache.Item, 0, room)
	err := s.Each(ctx, l.resource, c, l.filter, l.from, func(it *cache.Item) bool {
		p.Items = append(p.Items, it)
		more = l.limit > 0 && len(p.Items) == l.limit
		return !more
	})
	if err != nil || !more {
		return p, err
	}
	last := p.Items[len(p.Items)-1]
	rest := c.Count(cache.After(last.Namespace, last.Name))
	if rest == 0 {
		return p, nil
	}
	c.Pin()
	l.cut(p, int64(rest))
	return p, nil
}

// begin takes the first items of a list without a limit, in which nothing can fail.
func (l *list) begin(p *Page, c *Collection) {
	rest := &Remainder{of: c.snap.Selection(l.filter, c.namespace)}
	room := someItems
	if l.filter.Everything() {
		room = min(c.Count(l.from), firstItems)
	}
	p.Items, rest.from = rest.some(make([]*cache.Item, 0, room), l.from, firstItems)
	if len(p.Items) < firstItems {
		return
	}
	behind := c.Count(rest.from)
	rest.about = int(int64(len(p.Items)) * int64(behind) / int64(max(1, c.Count(l.from)-behind)))
	p.Remainder = rest
}

// cut marks the page as not the last.
func (l *list) cut(p *Page, rest int64) {
	last := p.Items[len(p.Items)-1]
	p.Continue = encodeContinue(p.Revision, l.spans, cache.After(last.Namespace, last.Name))
	if l.counts && rest > 0 {
		p.Remaining = rest
	}
}

// Page is the result of a list: all items, or a page of them.
type Page struct {
	Revision  int64
	Items     []*cache.Item // in key order: all, or the first ones
	Remainder *Remainder    // the items after Items, if the list has not read them yet; otherwise nil
	Continue  string        // the token of the next page; "" for none
	Remaining int64         // number of items after the page; -1: not reported
	Shard     string        // the shard selector of the items; "" for none
	Intact    bool          // none of the items is known to be corrupt

	place *fair.Place // in pastLists; nil: it needs none
}

// End releases the memory of the page, once its items are no longer in use. Repeated calls do nothing.
func (p *Page) End() { p.place.Leave() }

// OnContention arranges that f is called about once a second while other lists wait for the memory of the page, until End.
func (p *Page) OnContention(f func()) { p.place.OnContention(f) }

// Meta returns the list's metadata.
func (p *Page) Meta() *metav1.ListMeta {
	m := &metav1.ListMeta{ResourceVersion: strconv.FormatInt(p.Revision, 10), Continue: p.Continue}
	if p.Remaining >= 0 {
		m.RemainingItemCount = &p.Remaining
	}
	return m
}

const (
	// firstItems is the number of items of a long list that are read before the answer starts. It is one
	// more than a form weighs, so that a list of at most that many is complete.
	firstItems = 4096 + 1
	// nextItems is the size of each further part.
	nextItems = 1024
)

// Remainder is the end of a long list in which nothing can fail any more: all items are readable, and sent as they
// are stored. It holds the tree of one state, and the memory that the tree refers to.
type Remainder struct {
	of    *cache.Selection
	from  cache.Position
	about int // number of items, estimated from the first ones
}

// some appends the next items from a position on, and returns the position after them. Fewer than most are
// the last.
func (r *Remainder) some(to []*cache.Item, from cache.Position, most int) ([]*cache.Item, cache.Position) {
	end := len(to) + most
	r.of.Ascend(from, func(it *cache.Item) bool {
		to = append(to, it)
		return len(to) < end
	})
	if len(to) > 0 {
		last := to[len(to)-1]
		from = cache.After(last.Namespace, last.Name)
	}
	return to, from
}

// About returns the number of items; with a Remainder, an estimate.
func (p *Page) About() int {
	if p.Remainder == nil {
		return len(p.Items)
	}
	return len(p.Items) + p.Remainder.about
}

// Gather adds the rest to the items.
func (p *Page) Gather() {
	r := p.Remainder
	if r == nil {
		return
	}
	p.Items, p.Remainder = slices.Grow(p.Items, r.about), nil
	r.of.Ascend(r.from, func(it *cache.Item) bool {
		p.Items = append(p.Items, it)
		return true
	})
}

// Parts yields all items, in parts. A part is valid until the iteration continues.
func (p *Page) Parts() iter.Seq[[]*cache.Item] {
	return func(yield func([]*cache.Item) bool) {
		if !yield(p.Items) || p.Remainder == nil {
			return
		}
		part, at := make([]*cache.Item, 0, nextItems), p.Remainder.from
		for {
			part, at = p.Remainder.some(part[:0], at, nextItems)
			if len(part) > 0 && !yield(part) || len(part) < nextItems {
				return
			}
		}
	}
}
