package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

// Bounds implements sqlstore.Driver.
func (d *Driver) Bounds(ctx context.Context) (b sqlstore.Bounds, err error) {
	ctx, done := d.call(ctx, d.boundsTime())
	defer done(&err)
	var now, asked time.Time
	for well := false; !well; {
		var alive, synchronous bool
		var line int64
		shown := d.head.Load() // read afterwards: the answer may include concurrent commits
		asked = time.Now()
		err = d.pool.QueryRow(ctx, qBoundsNow).Scan(&b.Floor, &b.Head, &now, &alive, &line, &synchronous)
		well = alive && b.Head >= shown && line > 0 && line == d.lineage.number.Load() && !d.lineage.suspect.Load()
		if well {
			d.lineage.synchronous.Store(synchronous)
		}
		if err == nil && !well {
			err = d.examine(ctx)
		}
		if err != nil {
			return sqlstore.Bounds{}, fmt.Errorf("reading bounds: %w", err)
		}
	}
	d.clock.update(now, asked, time.Now())
	d.saw(b.Head)
	return b, nil
}

// saw remembers the newest revision met. Sessions keep the plans that they made when
// the table was smaller, where any index seemed as good as another: see grown.
func (d *Driver) saw(head int64) {
	d.raise(head)
	d.grown(head)
}

// showed remembers the revisions of rows that a reader gets. If the database lacks one of them later, it must not give
// that number to another write: see examine.
func (d *Driver) showed(rows ...sqlstore.Row) {
	newest := int64(0)
	for i := range rows {
		newest = max(newest, rows[i].Revision, rows[i].Superseded)
	}
	d.raise(newest)
}

// raise remembers a newer revision.
func (d *Driver) raise(head int64) {
	for old := d.head.Load(); head > old && !d.head.CompareAndSwap(old, head); old = d.head.Load() {
	}
}

// grown replaces the sessions when the table has grown a lot.
func (d *Driver) grown(head int64) {
	planned := d.planned.Load()
	if head >= firstPlans && head/growth >= planned && d.planned.CompareAndSwap(planned, head) {
		d.pool.Reset()
	}
}

const (
	firstPlans = 1000 // revisions; before, everything is quick
	growth     = 8
)

// Scan implements sqlstore.Driver.
func (d *Driver) Scan(ctx context.Context, req sqlstore.ScanRequest) (rows []sqlstore.Row, err error) {
	after, ok, err := req.Start()
	if err != nil || !ok && req.Revision == 0 {
		return nil, err
	}
	if !ok { // nothing can follow, but whether the snapshot is there has to be said
		f, err := d.Floors(ctx)
		if err != nil {
			return nil, err
		}
		b, err := d.Bounds(ctx)
		if err != nil {
			return nil, err
		}
		return nil, f.Check(req.Resource, req.Revision, b.Head)
	}
	req.After = after
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	if req.Revision == 0 {
		sql, args := statement(req, math.MaxInt64, qLiveAll, qLiveResource, qLiveNamespace)
		var found pgx.Rows
		if found, err = d.pool.Query(ctx, sql, args...); err == nil {
			rows, err = collectPage(found, &req)
		}
	} else {
		rows, err = d.scanSnapshot(ctx, req)
	}
	if err != nil {
		return nil, fmt.Errorf("scanning %q: %w", req.Resource, err)
	}
	d.showed(rows...)
	return rows, nil
}

// statement returns the text for the parts of the key in a request, and its arguments.
func statement(req sqlstore.ScanRequest, revision int64, all, resource, namespace string) (string, []any) {
	a := req.After
	switch {
	case req.Resource == "":
		return all, []any{revision, a.Resource, a.Namespace, a.Name, req.Namespace, req.Limit}
	case req.Namespace == "":
		return resource, []any{revision, req.Resource, a.Namespace, a.Name, req.Limit}
	}
	return namespace, []any{revision, req.Resource, req.Namespace, a.Name, req.Limit}
}

// farBack is the number of revisions back from which a search for each key is faster than reading
// all rows that ended since.
const farBack = 1000

// scanSnapshot merges, in key order, the live rows that were there already with
// those that have ended since, found in the way that suits the snapshot's depth.
// Both ways are right at any depth.
func (d *Driver) scanSnapshot(ctx context.Context, req sqlstore.ScanRequest) ([]sqlstore.Row, error) {
	var alive, gone []sqlstore.Row
	live := func(batch *pgx.Batch) {
		sql, args := statement(req, req.Revision, qLiveAll, qLiveResource, qLiveNamespace)
		batch.Queue(sql, args...).Query(page(&alive, &req))
	}
	near := func(batch *pgx.Batch) {
		sql, args := statement(req, req.Revision, qEndedAll, qEndedResource, qEndedNamespace)
		batch.Queue(sql, args...).Query(page(&gone, &req))
	}
	far := func(batch *pgx.Batch) {
		sql, args := statement(req, req.Revision, qPastAll, qPastResource, qPastNamespace)
		batch.Queue(sql, append(args, upTo(alive, req.Limit)...)...).Query(page(&gone, &req))
	}
	var packs []pack.Pack
	packed := func(batch *pgx.Batch) {
		sql, args := statement(req, req.Revision, qPackedAll, qPackedResource, qPackedNamespace)
		batch.Queue(sql, append(args, upTo(alive, req.Limit)...)...).Query(intoPacks(&packs))
	}
	var b sqlstore.Bounds
	var past string
	var err error
	if d.head.Load()-req.Revision <= d.far {
		b, err = d.snapshot(ctx, queueFloors(&past), live, near)
	} else {
		b, err = d.snapshot(ctx, queueFloors(&past), live, nil, far)
	}
	if err == nil && req.Revision < b.Floor && past != "" { // all of one snapshot
		b, err = d.snapshot(ctx, queueFloors(&past), live, nil, far, packed)
	}
	if err != nil {
		return nil, err
	}
	d.grown(b.Head) // of a connection whose row was not compared: its head proves nothing
	if err := check(b, past, req.Resource, req.Revision); err != nil {
		return nil, err
	}
	if gone, err = unfold(gone, packs, req.Revision); err != nil {
		return nil, err
	}
	if len(gone) == 0 {
		return alive, nil
	}
	rows := make([]sqlstore.Row, 0, min(req.Limit, len(alive)+len(gone)))
	for bytes := 0; !req.Full(len(rows), bytes) && len(alive)+len(gone) > 0; bytes += len(rows[len(rows)-1].Value) {
		if len(gone) == 0 || len(alive) > 0 && alive[0].Key.Compare(gone[0].Key) < 0 {
			rows, alive = append(rows, alive[0]), alive[1:]
		} else {
			rows, gone = append(rows, gone[0]), gone[1:]
		}
	}
	return rows, nil
}

// upTo returns the last key that past rows are looked for up to, where live ones fill the page.
func upTo(alive []sqlstore.Row, limit int) []any {
	if len(alive) < limit {
		return []any{nil, nil, nil}
	}
	k := alive[len(alive)-1].Key
	return []any{k.Resource, k.Namespace, k.Name}
}

// Read implements sqlstore.Driver.
func (d *Driver) Read(ctx context.Context, key sqlstore.Key, revision int64) (row sqlstore.Row, err error) {
	ctx, done := d.call(ctx, d.boundsTime())
	defer done(&err)
	if revision == 0 {
		row, found, err := queryRow(ctx, d.pool, qLive, key.Resource, key.Namespace, key.Name)
		if err == nil && !found {
			err = &sqlstore.NotFoundError{Key: key}
		}
		if err != nil {
			return sqlstore.Row{}, fmt.Errorf("reading %s: %w", key, err)
		}
		d.showed(row)
		return row, nil
	}
	var alive, gone []sqlstore.Row
	var packs []pack.Pack
	var past string
	b, err := d.snapshot(ctx, queueFloors(&past), func(batch *pgx.Batch) {
		batch.Queue(qLive, key.Resource, key.Namespace, key.Name).Query(into(&alive))
		batch.Queue(qReadEnded, revision, key.Resource, key.Namespace, key.Name).Query(into(&gone))
		batch.Queue(qPacked, revision, key.Resource, key.Namespace, key.Name).Query(intoPacks(&packs))
	})
	if err == nil {
		err = check(b, past, key.Resource, revision)
	}
	if err == nil && len(gone) == 0 {
		gone, err = unfold(gone, packs, revision)
	}
	switch {
	case err != nil:
	case len(alive) > 0 && alive[0].Revision <= revision:
		d.showed(alive[0])
		return alive[0], nil
	case len(gone) > 0:
		d.showed(gone[0])
		return gone[0], nil
	default:
		err = &sqlstore.NotFoundError{Key: key}
	}
	return sqlstore.Row{}, fmt.Errorf("reading %s: %w", key, err)
}

// Past implements sqlstore.Driver. A key's rows hold one after another: of those written
// below a revision, the newest alone can have ended at it or later.
func (d *Driver) Past(ctx context.Context, key sqlstore.Key, before int64, limit int) (rows []sqlstore.Row, err error) {
	if limit <= 0 {
		return nil, nil
	}
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.reading(ctx, func(tx pgx.Tx, b sqlstore.Bounds, f sqlstore.Floors) (err error) {
		if err := f.CheckBefore(before, b.Head); err != nil {
			return err
		}
		before := sqlstore.PastFrom(before)
		floor := f.Of(key.Resource)
		row, found, err := queryRow(ctx, tx, qLive, key.Resource, key.Namespace, key.Name)
		if err == nil && (!found || row.Revision >= before) {
			row, found, err = queryRow(ctx, tx, qReadEnded, before-1, key.Resource, key.Namespace, key.Name)
			found = found && row.Superseded > floor
		}
		if err != nil {
			return err
		}
		if found {
			rows = append(rows, row)
		}
		ended, err := queryRows(ctx, tx, qPast, before, key.Resource, key.Namespace, key.Name, floor, limit-len(rows))
		if rows = append(rows, ended...); err == nil && f.Past != nil {
			rows, err = pack.AppendPast(ctx, history{tx}, rows, key, before, floor, limit)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the past of %s: %w", key, err)
	}
	d.showed(rows...)
	return rows, nil
}

// Expired implements sqlstore.Driver.
func (d *Driver) Expired(ctx context.Context, now time.Time, limit int) (rows []sqlstore.Row, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	page := &sqlstore.ScanRequest{Limit: limit, Bytes: sqlstore.ChangesBytes}
	var found pgx.Rows
	if found, err = d.pool.Query(ctx, qExpired, now, limit); err == nil {
		rows, err = collectPage(found, page)
	}
	if err != nil {
		return nil, fmt.Errorf("reading expired rows: %w", err)
	}
	return rows, nil
}

// RevisionAt implements sqlstore.Driver by bisection: above the floor every
// revision has its row. Below it there are marks, one for each second.
func (d *Driver) RevisionAt(ctx context.Context, t time.Time) (revision int64, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.reading(ctx, func(tx pgx.Tx, b sqlstore.Bounds, f sqlstore.Floors) error {
		low, high := b.Floor, b.Head
		for low < high {
			middle := high - (high-low)/2
			var at time.Time
			if err := tx.QueryRow(ctx, qWrittenAt, middle).Scan(&at); err != nil {
				return err
			}
			if !at.After(t) {
				low = middle
			} else {
				high = middle - 1
			}
		}
		if revision = low; low > b.Floor || f.Past == nil {
			return nil
		}
		err := tx.QueryRow(ctx, qMarked, t.Unix()).Scan(&revision)
		revision = max(revision, f.Lowest())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("finding the revision at %s: %w", t, err)
	}
	return revision, nil
}

// Aged implements sqlstore.Driver.
func (d *Driver) Aged(ctx context.Context, newest, t, now time.Time) (revision int64, at time.Time, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.reading(ctx, func(tx pgx.Tx, b sqlstore.Bounds, f sqlstore.Floors) error {
		young := b.Head + 1
		if err := tx.QueryRow(ctx, qYoung, b.Floor, b.Head, t, now).Scan(&young); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var last int64
		if err := tx.QueryRow(ctx, qMarkedLast, now.Unix()).Scan(&last); err != nil {
			return err
		}
		least := newest
		if last := time.Unix(last, 0); last.After(least) {
			least = last
		}
		err := tx.QueryRow(ctx, qOldest, b.Floor, young, t, least).Scan(&revision, &at)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		err = tx.QueryRow(ctx, qMarkedOld, t.Unix(), now.Unix()).Scan(&revision)
		revision, at = max(revision, f.Lowest()), newest
		return err
	})
	if err != nil {
		return 0, newest, fmt.Errorf("finding what was written by %s: %w", t, err)
	}
	return revision, at, nil
}

// Since implements sqlstore.Driver. The row of the floor is there unless it was a delete; then a mark may be.
func (d *Driver) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	err = d.reading(ctx, func(tx pgx.Tx, b sqlstore.Bounds, _ sqlstore.Floors) error {
		if t, ok, err = writtenAt(ctx, tx, revision); ok || err != nil || revision > b.Floor {
			return err
		}
		if t, ok, err = markedSince(ctx, tx, revision); ok || err != nil {
			return err
		}
		t, ok, err = writtenAt(ctx, tx, b.Floor+1)
		return err
	})
	if err != nil {
		return t, false, fmt.Errorf("finding since when revision %d held: %w", revision, err)
	}
	return t, ok, nil
}

func writtenAt(ctx context.Context, tx pgx.Tx, revision int64) (t time.Time, ok bool, err error) {
	if err = tx.QueryRow(ctx, qWrittenAt, revision).Scan(&t); errors.Is(err, pgx.ErrNoRows) {
		return t, false, nil
	}
	return t, err == nil, err
}

// markedSince returns the first second by whose beginning, according to a mark, a revision had been written.
func markedSince(ctx context.Context, tx pgx.Tx, revision int64) (t time.Time, ok bool, err error) {
	var first, last *int64
	if err := tx.QueryRow(ctx, qMarkSeconds).Scan(&first, &last); err != nil || first == nil || last == nil {
		return t, false, err
	}
	second, err := sqlstore.SearchSecond(*first+1, *last+1, func(second int64) (bool, error) {
		var r int64
		err := tx.QueryRow(ctx, qMarked, second).Scan(&r)
		return r >= revision, err
	})
	return time.Unix(second, 0), err == nil && second <= *last+1, err
}
