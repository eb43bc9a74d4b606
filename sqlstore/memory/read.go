package memory

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sort"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Bounds implements sqlstore.Driver.
func (d *Driver) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	c, err := d.look(ctx)
	if err != nil {
		return sqlstore.Bounds{}, fmt.Errorf("reading bounds: %w", err)
	}
	return c.bounds, nil
}

// Read implements sqlstore.Driver.
func (d *Driver) Read(ctx context.Context, key sqlstore.Key, revision int64) (sqlstore.Row, error) {
	c, err := d.look(ctx)
	if err == nil && revision != 0 {
		err = c.kept().Check(key.Resource, revision, c.bounds.Head)
	}
	if err != nil {
		return sqlstore.Row{}, fmt.Errorf("reading %s: %w", key, err)
	}
	if row := c.at(&key, revision); row != nil {
		return copyForCaller(row), nil
	}
	return sqlstore.Row{}, fmt.Errorf("reading %s: %w", key, &sqlstore.NotFoundError{Key: key})
}

// at returns the row of a key in the snapshot at a revision; 0 is now.
func (c *content) at(key *sqlstore.Key, revision int64) *sqlstore.Row {
	row := c.find(key)
	if revision == 0 || row != nil && row.Revision <= revision {
		return row
	}
	if row = c.before(key, revision); row != nil && row.Superseded > revision {
		return row
	}
	return nil
}

// Scan implements sqlstore.Driver.
func (d *Driver) Scan(ctx context.Context, req sqlstore.ScanRequest) ([]sqlstore.Row, error) {
	after, follows, err := req.Start()
	if err != nil {
		return nil, err
	}
	c, err := d.look(ctx)
	if err == nil && req.Revision != 0 {
		err = c.kept().Check(req.Resource, req.Revision, c.bounds.Head)
	}
	if err != nil {
		return nil, fmt.Errorf("scanning %q: %w", req.Resource, err)
	}
	if !follows {
		return nil, nil
	}
	req.After = after
	alive := c.scanLive(req)
	var gone []*sqlstore.Row
	if req.Revision != 0 {
		if gone, err = c.scanPast(ctx, req); err != nil {
			return nil, fmt.Errorf("scanning %q: %w", req.Resource, err)
		}
	}
	found := make([]sqlstore.Row, 0, min(req.Limit, len(alive)+len(gone)))
	for bytes := 0; len(found) < cap(found) && !req.Full(len(found), bytes); bytes += len(found[len(found)-1].Value) {
		if len(gone) == 0 || len(alive) > 0 && compare(&alive[0].Key, &gone[0].Key) < 0 {
			found, alive = append(found, copyForCaller(alive[0])), alive[1:]
		} else {
			found, gone = append(found, copyForCaller(gone[0])), gone[1:]
		}
	}
	return found, nil
}

// within reports whether a row is of those that a request asks for, and ended whether none
// behind it can be.
func within(req *sqlstore.ScanRequest, r *sqlstore.Row) (ok, ended bool) {
	switch {
	case req.Resource == "":
		return req.Namespace == "" || req.Namespace == r.Key.Namespace, false
	case req.Resource != r.Key.Resource:
		return false, true
	case req.Namespace == "" || req.Namespace == r.Key.Namespace:
		return true, false
	}
	return false, true
}

func (c *content) scanLive(req sqlstore.ScanRequest) (found []*sqlstore.Row) {
	c.live.Ascend(&sqlstore.Row{Key: req.After}, func(r *sqlstore.Row) bool {
		ok, ended := within(&req, r)
		if ok && r.Key != req.After && (req.Revision == 0 || r.Revision <= req.Revision) {
			found = append(found, r)
		}
		return !ended && len(found) < req.Limit
	})
	return found
}

// scanPast finds the past rows of a snapshot, key by key: an object that changes often has
// many, of which one at most is of the snapshot.
func (c *content) scanPast(ctx context.Context, req sqlstore.ScanRequest) (found []*sqlstore.Row, err error) {
	after := req.After
	for n := 0; len(found) < req.Limit; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var next *sqlstore.Row
		c.past.Ascend(&sqlstore.Row{Key: after, Revision: math.MaxInt64}, func(r *sqlstore.Row) bool {
			next = r
			return false
		})
		if next == nil {
			break
		}
		ok, ended := within(&req, next)
		if ended {
			break
		}
		after = next.Key
		if !ok {
			continue
		}
		if row := c.before(&after, req.Revision); row != nil && row.Superseded > req.Revision {
			found = append(found, row)
		}
	}
	return found, nil
}

// Past implements sqlstore.Driver.
func (d *Driver) Past(ctx context.Context, key sqlstore.Key, before int64, limit int) (found []sqlstore.Row, err error) {
	c, err := d.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the past of %s: %w", key, err)
	}
	if err := c.kept().CheckBefore(before, c.bounds.Head); err != nil {
		return nil, fmt.Errorf("reading the past of %s: %w", key, err)
	}
	before = sqlstore.PastFrom(before)
	floor := c.kept().Of(key.Resource)
	if row := c.find(&key); row != nil && row.Revision < before && limit > 0 {
		found = append(found, copyForCaller(row))
	}
	c.past.Descend(&sqlstore.Row{Key: key, Revision: before - 1}, func(r *sqlstore.Row) bool {
		if r.Key != key || r.Superseded <= floor || len(found) >= limit {
			return false
		}
		found = append(found, copyForCaller(r))
		return true
	})
	return found, nil
}

// RevisionAt implements sqlstore.Driver. It looks from the newest row backwards, because
// clocks may have been set.
func (d *Driver) RevisionAt(ctx context.Context, at time.Time) (int64, error) {
	c, err := d.look(ctx)
	if err != nil {
		return 0, fmt.Errorf("looking for the revision at %s: %w", at, err)
	}
	floor := c.kept().Lowest()
	revision := floor
	c.log.Reverse(func(r *sqlstore.Row) bool {
		if !r.WrittenAt.After(at) {
			revision = max(revision, r.Revision)
			return false
		}
		return r.Revision > floor
	})
	return revision, nil
}

// Aged implements sqlstore.Driver.
func (d *Driver) Aged(ctx context.Context, newest, t, now time.Time) (revision int64, at time.Time, err error) {
	c, err := d.look(ctx)
	if err != nil {
		return 0, newest, fmt.Errorf("looking for what was written by %s: %w", t, err)
	}
	revision, at = c.kept().Lowest(), newest
	c.log.Ascend(&sqlstore.Row{Revision: revision + 1}, func(r *sqlstore.Row) bool {
		if r.WrittenAt.After(t) {
			return r.WrittenAt.After(now)
		}
		if !r.WrittenAt.Before(at) {
			revision, at = r.Revision, r.WrittenAt
		}
		return true
	})
	return revision, at, nil
}

// Note implements sqlstore.Driver.
func (d *Driver) Note(ctx context.Context, name string) (string, error) {
	c, err := d.look(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the note %s: %w", name, err)
	}
	return c.notes[name], nil
}

// SetNote implements sqlstore.Driver.
func (d *Driver) SetNote(ctx context.Context, name, was, is string) (ok bool, err error) {
	err = d.change(ctx, func(next *content) error {
		if ok = next.notes[name] == was; !ok {
			return nil
		}
		if next.notes == nil {
			next.notes = make(map[string]string)
		}
		next.notes[name] = is
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("writing the note %s: %w", name, err)
	}
	return ok, nil
}

// Since implements sqlstore.Driver.
func (d *Driver) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	c, err := d.look(ctx)
	if err != nil {
		return t, false, fmt.Errorf("looking since when revision %d held: %w", revision, err)
	}
	if c.mark.revision == revision {
		return c.mark.at, true, nil
	}
	c.log.Ascend(&sqlstore.Row{Revision: revision}, func(r *sqlstore.Row) bool {
		t, ok = r.WrittenAt, true
		return false
	})
	return t, ok, nil
}

// Expired implements sqlstore.Driver.
func (d *Driver) Expired(ctx context.Context, now time.Time, limit int) (found []sqlstore.Row, err error) {
	c, err := d.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for expired rows: %w", err)
	}
	page, bytes := &sqlstore.ScanRequest{Limit: limit, Bytes: sqlstore.ChangesBytes}, 0
	c.expiring.Scan(func(r *sqlstore.Row) bool {
		if r.ExpiresAt.After(now) || page.Full(len(found), bytes) {
			return false
		}
		found, bytes = append(found, copyForCaller(r)), bytes+len(r.Value)
		return true
	})
	return found, nil
}

// schema is the version of the schema, which never changes here.
const schema = 1

// Stats implements sqlstore.Driver.
func (d *Driver) Stats(ctx context.Context) (sqlstore.Stats, error) {
	c, err := d.look(ctx)
	if err != nil {
		return sqlstore.Stats{}, fmt.Errorf("reading statistics: %w", err)
	}
	s := sqlstore.Stats{
		Driver: "memory", ServerVersion: runtime.Version(), SchemaVersion: schema, ClusterID: c.cluster, Bounds: c.bounds,
		LiveRows: int64(c.live.Len()), HistoryRows: int64(c.past.Len()), Bytes: c.bytes,
	}
	oldest := func(r *sqlstore.Row) {
		if s.OldestWrittenAt.IsZero() || r.WrittenAt.Before(s.OldestWrittenAt) {
			s.OldestWrittenAt = r.WrittenAt
		}
	}
	c.past.Scan(func(r *sqlstore.Row) bool {
		oldest(r)
		return true
	})
	c.live.Scan(func(r *sqlstore.Row) bool {
		oldest(r)
		if n := len(s.Resources); n == 0 || s.Resources[n-1].Resource != r.Key.Resource {
			s.Resources = append(s.Resources, sqlstore.ResourceStats{Resource: r.Key.Resource})
		}
		of := &s.Resources[len(s.Resources)-1]
		of.Objects++
		of.Bytes += int64(len(r.Value))
		return true
	})
	sort.Slice(s.Resources, func(i, j int) bool { return s.Resources[i].Resource < s.Resources[j].Resource })
	return s, nil
}
