package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/sqlstore"
)

// state is an object at a revision: write is the last write by then, nil if the object did not exist before,
// and before is the previous write, nil if it is not kept.
type state struct {
	revision      int64
	write, before *objects.Write
}

// there reports whether the object existed.
func (s *state) there() bool { return s.write != nil && !s.write.Deleted }

// number formats a revision.
func number(revision int64) string { return strconv.FormatInt(revision, 10) }

// Writes to read for a state: with the previous one, or without.
const (
	alone = 1
	pair  = 2
)

// at finds a state, alone or as one of a pair. Its errors are API statuses: 410 if that past is not kept, 504
// for a revision that does not come into existence soon, 400 for a time in the future.
func (o *object) at(ctx context.Context, s history.State, writes int) (*state, error) {
	revision := s.Revision
	if revision == 0 {
		var err error
		if revision, err = o.timed(ctx, o.h, s.Time); err != nil {
			return nil, err
		}
	} else if err := o.h.Objects.Reach(ctx, revision); err != nil {
		return nil, err
	}
	list, err := o.past(ctx, revision+1, writes)
	if err != nil {
		return nil, err
	}
	floor, earlier := int64(0), false
	if len(list) == 0 {
		// After the rows: another server may have deleted them, and this one may not know yet.
		if earlier, err = o.before(revision); err == nil && !earlier {
			floor, err = o.h.Objects.AskPastFloor(ctx, o.place.Resource)
		}
	}
	// At the floor, the time may precede the floor: the write of then may be gone.
	if err == nil && s.Revision == 0 && (len(list) == 0 || list[0].WrittenAt.After(s.Time)) {
		err = o.known(ctx, o.h, revision, s.Time)
	}
	switch {
	case err != nil:
		return nil, err
	case len(list) > 0:
	case earlier:
		return nil, o.earlier()
	case revision < floor:
		return nil, o.expired(floor)
	default:
		return &state{revision: revision}, nil
	}
	found := &state{revision: revision, write: &list[0]}
	if len(list) > 1 {
		found.before = &list[1]
	}
	return found, nil
}

// past reads writes below a revision, newest first, in the version for the answer. It converts the writes of
// one read together; the items keep the result.
func (o *object) past(ctx context.Context, before int64, limit int) ([]objects.Write, error) {
	writes, err := o.h.Objects.Past(ctx, o.permit, o.place, before, limit)
	var gone *sqlstore.CompactedError
	if errors.As(err, &gone) {
		return nil, o.expired(gone.Floor)
	}
	if err == nil {
		writes, err = o.ofThisNamespace(writes)
	}
	if err != nil || !o.place.Resource.LoadMayFail() {
		return writes, err
	}
	items, refs := make([]*cache.Item, len(writes)), make([]*objects.Write, len(writes))
	for i := range writes {
		items[i], refs[i] = writes[i].Item, &writes[i]
	}
	leave, err := o.room(ctx, refs...)
	if err != nil {
		return nil, err
	}
	defer leave()
	return writes, o.h.Objects.Convert(ctx, o.place.Resource, items)
}

func (o *object) expired(floor int64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("history of %s is kept from revision %d on", o.place.Resource.GroupResource(), max(floor, 1)))
}

// timed returns the newest revision at a time.
func (t *handlers) timed(ctx context.Context, h *verbs.Handler, at time.Time) (int64, error) {
	if now := h.Objects.Now(); at.After(now) {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("%s is to come: by the server's clock it is %s", at.Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
	}
	return h.Objects.RevisionAt(ctx, at)
}

// revisionOf returns the revision at a moment, "now" or a time in RFC 3339, and the oldest revision at which
// everything can be read.
func (t *handlers) revisionOf(ctx context.Context, h *verbs.Handler, moment string) (revision, oldest int64, err error) {
	if moment == "now" {
		if err := h.Objects.CatchUp(ctx); err != nil {
			return 0, 0, err
		}
		return h.Objects.Revision(), h.Objects.Oldest(), nil
	}
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return 0, 0, apierrors.NewBadRequest(fmt.Sprintf(`%q is no moment: name a time in RFC 3339, such as 2026-01-31T14:05:00Z, or "now"`, moment))
	}
	if revision, err = t.timed(ctx, h, at); err != nil {
		return 0, 0, err
	}
	oldest = h.Objects.Oldest()
	return revision, oldest, t.known(ctx, h, max(revision, oldest), at)
}

// known fails with 410 if a revision is newer than a time, because then all retained revisions are newer. The time before
// the first write of a database counts as compacted history. The error names the oldest known time.
func (t *handlers) known(ctx context.Context, h *verbs.Handler, revision int64, at time.Time) error {
	floor := max(revision, 1)
	since, ok, err := h.Objects.Since(ctx, floor)
	switch {
	case err != nil:
		return err
	case !ok:
		return apierrors.NewResourceExpired(fmt.Sprintf("what held at %s is not known: nothing has been written since the history before revision %d was compacted", at.Format(time.RFC3339), floor))
	case at.Before(since):
		return apierrors.NewResourceExpired(fmt.Sprintf("what held at %s is not known: the oldest moment that can be shown is %s", at.Format(time.RFC3339), roundUp(since).Format(time.RFC3339)))
	}
	return nil
}

// roundUp rounds a time up to a full second, so that clients can send the shown time back.
func roundUp(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		t = whole.Add(time.Second)
	}
	return t.UTC()
}
