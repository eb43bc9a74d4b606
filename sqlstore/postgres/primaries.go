package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Where a URL names several hosts, each connection goes to the first that accepts writes. After a failover whose
// old primary came back, that may be the wrong one. A server that has just started, or has not lost its connections,
// knows no other. So the driver identifies the database of each host before it uses one, and periodically.

const (
	primariesEvery = 15 * time.Second
	primariesTime  = 2 * time.Second // for all hosts; one that does not answer is ignored
)

// checkPrimaries connects to all hosts, and ensures that the driver uses the newest database.
func (d *Driver) checkPrimaries(ctx context.Context) {
	base := d.single.Config.Copy()
	d.hosts.refresh(base)
	list := places(base)
	if len(list) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, primariesTime)
	defer cancel()
	found := make([]*place, len(list))
	var checks sync.WaitGroup
	for i, host := range list {
		checks.Go(func() {
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
			if conn, err := pgconn.ConnectConfig(ctx, c); err == nil { // a host that cannot be reached is no primary
				conn.Close(ctx)
			}
		})
	}
	checks.Wait()
	found = slices.DeleteFunc(found, func(p *place) bool { return p == nil })
	// The newest first: the others are then compared with it.
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
			d.lineage.meetOther(p)
		}
	}
}

// meetOther is meet for a database that the driver may not use: it ignores one that is neither newer nor older than
// the known one.
func (l *lineage) meetOther(p *place) {
	l.mu.Lock()
	known := l.known
	stand := l.compare(p)
	l.mu.Unlock()
	if known != nil && stand == another && p.number <= known.number && !known.identity.branchedBefore(p.identity) {
		return
	}
	_ = l.meet(*p) // it logs what it refuses
}

// watchPrimaries calls checkPrimaries until ctx ends.
func (d *Driver) watchPrimaries(ctx context.Context) {
	if len(places(&d.single.Config)) < 2 {
		return
	}
	tick := time.NewTicker(primariesEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.checkPrimaries(ctx)
		case <-ctx.Done():
			return
		case <-d.closing:
			return
		}
	}
}
