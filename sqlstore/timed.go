package sqlstore

import (
	"context"
	"time"
)

// timed is a driver that reports its calls to an Observer and to the refusals. The committer reports commits,
// after its last attempt.
type timed struct {
	Driver
	to      Observer
	refused *refusals
}

func (t timed) record(query string, began time.Time, err *error) {
	t.to.Queried(query, time.Since(began), *err)
	t.refused.record(query, *err)
}

func (t timed) Lead(ctx context.Context, name string) (held <-chan struct{}, release func(), ok bool, err error) {
	defer func() { t.refused.record("lead", err) }()
	return t.Driver.Lead(ctx, name)
}

func (t timed) Bounds(ctx context.Context) (b Bounds, err error) {
	defer t.record("bounds", time.Now(), &err)
	return t.Driver.Bounds(ctx)
}

func (t timed) Scan(ctx context.Context, req ScanRequest) (rows []Row, err error) {
	defer t.record("scan", time.Now(), &err)
	return t.Driver.Scan(ctx, req)
}

func (t timed) Read(ctx context.Context, key Key, revision int64) (row Row, err error) {
	defer t.record("read", time.Now(), &err)
	return t.Driver.Read(ctx, key, revision)
}

func (t timed) ReadAll(ctx context.Context, revision int64, take func([]Row) error) (err error) {
	defer t.record("read_all", time.Now(), &err)
	return t.Driver.ReadAll(ctx, revision, take)
}

func (t timed) CheckRows(ctx context.Context, values bool, page func([]Row) error) (err error) {
	defer t.record("check_rows", time.Now(), &err)
	return t.Driver.CheckRows(ctx, values, page)
}

func (t timed) Past(ctx context.Context, key Key, before int64, limit int) (rows []Row, err error) {
	defer t.record("past", time.Now(), &err)
	return t.Driver.Past(ctx, key, before, limit)
}

func (t timed) Changes(ctx context.Context, after int64, limit int, previous bool) (changes []Change, err error) {
	defer t.record("changes", time.Now(), &err)
	return t.Driver.Changes(ctx, after, limit, previous)
}

func (t timed) Trim(ctx context.Context, to int64, limit int) (deleted int, err error) {
	defer t.record("trim", time.Now(), &err)
	return t.Driver.Trim(ctx, to, limit)
}

func (t timed) Retain(ctx context.Context, to Floors) (f Floors, err error) {
	defer t.record("retain", time.Now(), &err)
	return t.Driver.Retain(ctx, to)
}

func (t timed) Pack(ctx context.Context, from Cursor, limit int) (p Packed, err error) {
	defer t.record("pack", time.Now(), &err)
	return t.Driver.Pack(ctx, from, limit)
}

func (t timed) Forget(ctx context.Context, limit int) (deleted int, err error) {
	defer t.record("forget", time.Now(), &err)
	return t.Driver.Forget(ctx, limit)
}

func (t timed) LastChanges(ctx context.Context, after, upTo int64) (last map[string]int64, err error) {
	defer t.record("last_changes", time.Now(), &err)
	return t.Driver.LastChanges(ctx, after, upTo)
}

func (t timed) RevisionAt(ctx context.Context, at time.Time) (revision int64, err error) {
	defer t.record("revision_at", time.Now(), &err)
	return t.Driver.RevisionAt(ctx, at)
}

func (t timed) Aged(ctx context.Context, newest, by, now time.Time) (revision int64, at time.Time, err error) {
	defer t.record("aged", time.Now(), &err)
	return t.Driver.Aged(ctx, newest, by, now)
}

func (t timed) Since(ctx context.Context, revision int64) (at time.Time, ok bool, err error) {
	defer t.record("since", time.Now(), &err)
	return t.Driver.Since(ctx, revision)
}

func (t timed) Expired(ctx context.Context, now time.Time, limit int) (rows []Row, err error) {
	defer t.record("expired", time.Now(), &err)
	return t.Driver.Expired(ctx, now, limit)
}

func (t timed) Resolve(ctx context.Context) (out []Outcome, committed bool, err error) {
	defer func(began time.Time) { t.to.Queried("resolve", time.Since(began), err) }(time.Now()) // the committer reports the result
	return t.Driver.Resolve(ctx)
}
