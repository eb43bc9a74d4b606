package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Where a URL names several hosts, each connection goes to the first that takes writes. After a failover whose
// old primary came back that may be the wrong one, and a server that starts, or that has not lost its connections,
// has met no other. So all hosts are asked what they are, before one is used and now and then.

const (
	rivalsEvery = 15 * time.Second
	rivalsTime  = 2 * time.Second // for all of them: one that does not answer is no rival
)

// lookAround asks all hosts, and sees to it that the newest database is the one that is used.
func (d *Driver) lookAround(ctx context.Context) {
	base := d.single.Config.Copy()
	d.hosts.refresh(base)
	list := places(base)
	if len(list) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rivalsTime)
	defer cancel()
	found := make([]*place, len(list))
	var asking sync.WaitGroup
	for i, host := range list {
		asking.Go(func() {
			c := base.Copy()
			narrow(c, host)
			c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
				if err := d.accepts(ctx, conn); err != nil {
					return err
				}
				if p, ok, err := d.placeOf(ctx, conn); err == nil && ok && p.number > 0 {
					found[i] = &p
				}
				return nil
			}
			if conn, err := pgconn.ConnectConfig(ctx, c); err == nil { // a host that cannot be reached is no rival
				conn.Close(ctx)
			}
		})
	}
	asking.Wait()
	found = slices.DeleteFunc(found, func(p *place) bool { return p == nil })
	// The newest first: the others are then judged beside it.
	slices.SortStableFunc(found, func(a, b *place) int {
		switch {
		case a.number != b.number:
			return int(min(1, max(-1, b.number-a.number)))
		case a.identity.branchedBefore(b.identity):
			return 1
		case b.identity.branchedBefore(a.identity):
			return -1
		}
		return 0
	})
	for i, p := range found {
		if i == 0 || !p.identity.is(found[0].identity) {
			d.line.meetRival(p)
		}
	}
}

// meetRival is meet for a database of which it is not decided that it will be used: one that is neither newer nor older than
// the known one is ignored.
func (l *line) meetRival(p *place) {
	l.mu.Lock()
	known := l.known
	stand := l.judge(p)
	l.mu.Unlock()
	if known != nil && stand == another && p.number <= known.number && !known.identity.branchedBefore(p.identity) {
		return
	}
	_ = l.meet(*p) // what it refuses it has told
}

// watchRivals looks around until ctx ends.
func (d *Driver) watchRivals(ctx context.Context) {
	if len(places(&d.single.Config)) < 2 {
		return
	}
	tick := time.NewTicker(rivalsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.lookAround(ctx)
		case <-ctx.Done():
			return
		case <-d.closing:
			return
		}
	}
}
