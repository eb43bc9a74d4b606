package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// examine is called if the database may have gone back, or PostgreSQL may have crashed. If so, it durably skips
// the revisions that clients may have seen: it raises revision and floor of the log above them, so that those
// clients have to list again. Retained snapshots of the past stay.
func (d *Driver) examine(ctx context.Context) error {
	_, _, err := d.leaveOut(ctx, -1)
	return err
}

// SkipRevisions implements sqlstore.Admin.
func (d *Driver) SkipRevisions(ctx context.Context, count int64) (from, to int64, err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	if from, to, err = d.leaveOut(ctx, max(0, count)); err != nil {
		return 0, 0, fmt.Errorf("skipping revisions: %w", err)
	}
	return from, to, nil
}

// leaveOut skips count revisions. With 0 it skips all that clients may have seen. With a negative count it does so
// only if revisions may have been lost.
func (d *Driver) leaveOut(ctx context.Context, count int64) (head, to int64, err error) {
	l := &d.lineage
	select {
	case l.examining <- struct{}{}:
		defer func() { <-l.examining }()
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	var p place
	var r sqlstore.Rewind
	stand, promoted, copied := theSame, false, false // promoted: and nothing is lost
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, qLock).Scan(&head); err != nil {
			return err
		}
		to = head
		if count > 0 {
			if err := sqlstore.CheckHeadroom(head + count); err != nil {
				return err
			}
		}
		var column [columnsOfPlace]string
		if err := tx.QueryRow(ctx, placeQuery(l.bare.Load())).Scan(&column[0], &column[1], &column[2], &column[3], &column[4], &column[5]); err != nil {
			return err
		}
		p = parsePlace(column)
		var alive, unsynced bool
		var reserved, since, now int64
		if err := tx.QueryRow(ctx, qAlive).Scan(&alive, &reserved, &unsynced, &since, &now); err != nil {
			return err
		}
		l.mu.Lock()
		shown, was := l.shown(), l.before
		stand = l.compare(&p)
		if stand == older && count < 0 {
			defer l.mu.Unlock()
			return fmt.Errorf("%w: %w", sqlstore.ErrUnavailable, l.refuse(&p))
		}
		l.mu.Unlock()
		r = sqlstore.Rewind{Shown: shown, Found: head}
		most := max(head, shown, reserved) + sqlstore.RevisionGap(time.Duration(since)*time.Second)
		switch {
		case count > 0:
			r.Reason, to = "`rowlock store skip-revisions`", head+count
		case count == 0:
			r.Reason, to = "`rowlock store skip-revisions`", most
		case head < shown:
			r.Reason, to = "its newest revision is below one that was met here before", most
		case stand == another && was == nil && !p.in.branchedBefore(p.identity):
			copied = true // and it has all revisions that this process has read
		case stand == another && was != nil && was.branchedBefore(p.identity) && p.number == was.number && reserved <= head && l.synchronous.Load():
			promoted = true
		case stand == another:
			r.Reason, to = "it was promoted, restored or copied since a server used it last", most
		case !alive && unsynced:
			r.Reason, to = "PostgreSQL has crashed, and its synchronous_commit is off", most
		case !alive && reserved > head:
			r.Reason, to = "PostgreSQL has crashed, and relaxed commits may be lost", reserved
		}
		if r.ContinuesAt = to; to > head {
			if err := skip(ctx, tx, head, to); err != nil {
				return fmt.Errorf("leaving out revisions: %w", err)
			}
		}
		if to > head || p.number == 0 || promoted || copied {
			p.in, p.from, p.to = p.identity, head, to
			p.number = max(p.number+1, l.number.Load()+1, now)
			if _, err := tx.Exec(ctx, qSetLine, p.number, p.word()); err != nil {
				return err
			}
		}
		if !alive {
			_, err := tx.Exec(ctx, qRevive)
			return err
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.number.Load() >= p.number && to == head: // a concurrent call has taken it
	case to > head:
		l.found(&p, r)
		d.wake()
	case copied:
		l.keep(&p)
		l.log.Warn("the database is a copy of one that servers used; if clients or other servers have seen later revisions than it has, run `rowlock store skip-revisions` on it", "newest revision", head, "database", p.identity.String())
	case promoted:
		l.moved(&p)
		d.wake()
	case stand == newer:
		l.learn(&p, r.Shown)
	default:
		l.keep(&p)
	}
	l.suspect.Store(false)
	d.saw(to)
	return head, to, nil
}
