package objects

import (
	"context"
	"errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/sqlstore"
)

// An earlier state that only the table has is read into memory for one list, until its answer has been sent. A list that holds
// more than pastFree bytes of it waits for one of pastLists places, and a user has one. It holds nothing, and no seat, while it waits.
const (
	pastFree  = 4 << 20
	pastLists = 2
)

// errNoPlace: a list needs a place.
var errNoPlace = errors.New("the earlier state is too large for a list without a place")

// takeRows takes the selected items at l.exact from the table.
func (s *Store) takeRows(ctx context.Context, l *list) (p *Page, err error) {
	if p, err = s.readRows(ctx, l, nil); !errors.Is(err, errNoPlace) {
		return p, err
	}
	var place *fair.Place
	err = l.waiting(func() (err error) {
		place, err = s.pastLists.Enter(ctx, l.user, 1)
		return err
	})
	if err == nil {
		p, err = s.readRows(ctx, l, place)
	}
	if err != nil {
		place.Leave()
	}
	return p, err
}

// readRows is takeRows with a place, or nil. The remaining items are not counted: that would cost as much as reading them.
// Errors: errNoPlace if it needs a place.
func (s *Store) readRows(ctx context.Context, l *list, place *fair.Place) (*Page, error) {
	p, held := &Page{Revision: l.exact, Remaining: -1, Shard: l.filter.ShardText(), place: place}, 0
	full := func() bool { return l.limit > 0 && len(p.Items) == l.limit }
	sel := s.selection(ctx, l.resource, l.filter, func(it *cache.Item) bool {
		p.Items = append(p.Items, it)
		return !full()
	})
	home := s.Home(l.resource.Storage)
	var large error
	err := s.scan(ctx, l.permit, l.place(), l.exact, l.from, func(row *sqlstore.Row) bool {
		if full() {
			l.cut(p, 0)
			return false
		}
		if held > pastFree && place == nil {
			large = errNoPlace
			return false
		}
		if it := cache.NewItem(s.cache.JSON(), row, home); l.filter.Match(it) {
			held += it.Size()
			sel.add(it) // one more row shows whether a full page is the last
		}
		return sel.err == nil && !(full() && len(sel.waiting) > 0)
	})
	if err == nil {
		err = large
	}
	if err == nil && !full() {
		sel.settle()
	}
	if err == nil {
		err = sel.err
	}
	if err != nil {
		return nil, err
	}
	if full() && p.Continue == "" && len(sel.waiting) > 0 {
		l.cut(p, 0)
	}
	return p, nil
}
