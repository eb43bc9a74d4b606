package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
)

// wake has the notifier notify the other servers of a commit. Commits during
// a notification share the next one.
func (d *Driver) wake() {
	select {
	case d.notify <- struct{}{}:
	default:
	}
}

// Hints implements sqlstore.Driver: notifications on a connection of their own, a
// look after each (re)connect, and a slow poll behind both.
func (d *Driver) Hints(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	hint := func() {
		select {
		case hints <- struct{}{}:
		default:
		}
	}
	if !d.cfg.Poll {
		d.leads.beginSession()
	}
	ctx, cancel := context.WithCancel(ctx)
	d.loops.Add(1)
	go func() {
		defer d.loops.Done()
		defer close(hints)
		defer cancel()
		var beside sync.WaitGroup
		if !d.cfg.Poll {
			beside.Go(func() { d.listen(ctx, hint) })
		}
		beside.Go(func() { d.watchPrimaries(ctx) })
		d.tick(ctx, hint)
		cancel()
		beside.Wait()
	}()
	return hints
}

// notifyPause is the interval in which successive commits share a notification.
const notifyPause = 2 * time.Millisecond

// tick polls, and notifies others of own commits.
func (d *Driver) tick(ctx context.Context, hint func()) {
	poll := time.NewTicker(d.cfg.PollInterval)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			hint()
		case <-d.notify:
			if d.cfg.Poll {
				continue
			}
			if _, err := d.pool.Exec(ctx, fmt.Sprintf(qNotify, d.nonce), pgx.QueryExecModeSimpleProtocol); err != nil && ctx.Err() == nil {
				d.cfg.Log.Debug("cannot notify other servers; they will poll", "error", err)
			}
			sqlstore.Sleep(ctx, notifyPause)
		case <-ctx.Done():
			return
		case <-d.closing:
			return
		}
	}
}

// listen waits for notifications until ctx ends, and connects again when the
// connection breaks.
func (d *Driver) listen(ctx context.Context, hint func()) {
	const most = 2 * time.Second
	for wait := 20 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, most) {
		began := time.Now()
		err := d.listenOnce(ctx, hint)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > most {
			wait = 20 * time.Millisecond
		}
		d.cfg.Log.Warn("the connection that listens for other servers' writes broke; connecting again", "error", redact(err))
		d.closeConnections(err)
		sqlstore.Sleep(ctx, wait)
		d.cfg.Reconnected()
	}
}

// errMoved: the connection may be to an old primary.
var errMoved = errors.New("a standby was promoted, or another database is used")

func (d *Driver) listenOnce(ctx context.Context, hint func()) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(over)
	begin, cancel := d.limit(ctx, d.boundsTime())
	if _, err = conn.Exec(begin, qOwnSession, pgx.QueryExecModeSimpleProtocol); err == nil {
		_, err = conn.Exec(begin, qListen)
	}
	if err == nil {
		_, err = conn.Exec(begin, qSession, leadSession(d.nonce))
	}
	cancel()
	if err != nil {
		return err
	}
	d.leads.setSession(true)
	defer d.leads.setSession(false)
	// This look finds commits from before LISTEN took effect, or from a time without a listener.
	hint()
	for line := d.lineage.number.Load(); ; {
		if d.lineage.number.Load() != line {
			return errMoved
		}
		// Otherwise a dead connection that was never closed would wait forever.
		waiting, cancel := context.WithTimeout(ctx, listenFor)
		n, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil && n.Payload != d.nonce: // own commits need no look
			hint()
		case err == nil:
		case ctx.Err() != nil || waiting.Err() == nil:
			return err
		default:
			if err := ping(ctx, conn); err != nil {
				return err
			}
		}
	}
}

// listenFor is the time after which a listener without notifications checks its connection.
const listenFor = 10 * time.Second

func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return conn.Ping(ctx)
}
