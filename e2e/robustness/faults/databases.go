//go:build unix

package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

func databases() []Fault {
	server := func(name, what string, often int, run func(context.Context, *env, *pgtest.Proxy) string) Fault {
		return Fault{Name: name, What: what, Store: "postgres", Cuts: true, Often: often, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			done := run(ctx, e, e.c.Back(i))
			return outcome{what: fmt.Sprintf("between server %d and PostgreSQL %s", i, done), server: i}
		}}
	}
	primary := func(name, what string, often int, run func(context.Context, *env, *pgtest.Server) (string, error)) Fault {
		return Fault{Name: name, What: what, Store: "postgres", Cuts: true, Often: often, run: func(ctx context.Context, e *env) outcome {
			done, err := run(ctx, e, e.c.Postgres())
			return outcome{what: done, server: -1, err: err}
		}}
	}
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return []Fault{
		primary("pg-kill", "all processes of PostgreSQL are killed by SIGKILL, and it is started again", 3, func(ctx context.Context, e *env, pg *pgtest.Server) (string, error) {
			pg.Crash()
			d := e.wait(ctx, 0, 2*time.Second)
			return fmt.Sprintf("PostgreSQL is killed, and started after %s", ms(d)), pg.Run(context.Background())
		}),
		primary("pg-restart", "PostgreSQL is shut down, fast or at once, and started again", 2, func(ctx context.Context, e *env, pg *pgtest.Server) (string, error) {
			how := "fast"
			if e.rand.IntN(2) == 0 {
				how = "immediate"
				pg.Kill()
			} else {
				pg.Shutdown()
			}
			d := e.wait(ctx, 0, 2*time.Second)
			return fmt.Sprintf("PostgreSQL is shut down (%s), and started after %s", how, ms(d)), pg.Run(context.Background())
		}),
		primary("pg-pause", "all processes of PostgreSQL are stopped by SIGSTOP for up to 7 seconds", 2, func(ctx context.Context, e *env, pg *pgtest.Server) (string, error) {
			pg.Suspend()
			d := e.wait(ctx, 200*time.Millisecond, 7*time.Second)
			pg.Continue()
			return fmt.Sprintf("PostgreSQL sleeps for %s", ms(d)), nil
		}),
		primary("pg-failover", "PostgreSQL is killed, or hangs, and a synchronous standby, of which every server has heard, is promoted", 2, func(ctx context.Context, e *env, _ *pgtest.Server) (string, error) {
			f := e.failover(ctx)
			return fmt.Sprintf("a standby of PostgreSQL takes over (the primary hangs: %v)", f.Hangs), e.c.Failover(f)
		}),
		primary("pg-returns", "after such a failover the former primary is started again, and for up to 3 seconds servers find it in the place of the new one", 1, func(ctx context.Context, e *env, _ *pgtest.Server) (string, error) {
			f := e.failover(ctx)
			f.Returns = true
			return fmt.Sprintf("a standby of PostgreSQL takes over (the primary hangs: %v), and the former primary comes back", f.Hangs), e.c.Failover(f)
		}),
		primary("pg-loss", "a standby that lacks the commits of the last seconds is promoted", 1, func(ctx context.Context, e *env, _ *pgtest.Server) (string, error) {
			f := e.failover(ctx)
			f.Loses = true
			loss := &history.Loss{Begin: e.rec.Now()}
			f.Found = func(found uint64) { loss.Found = found }
			err := e.c.Failover(f)
			if loss.End = e.rec.Now(); loss.Found != 0 {
				e.rec.Add(loss)
			}
			return fmt.Sprintf("a standby of PostgreSQL takes over that has nothing behind revision %d", loss.Found), err
		}),
		server("db-cut", "all connections of a server to PostgreSQL are closed", 2, func(_ context.Context, _ *env, p *pgtest.Proxy) string {
			p.CloseConnections()
			return "connections are cut"
		}),
		server("db-stall", "nothing passes between a server and PostgreSQL for up to 6 seconds", 3, func(ctx context.Context, e *env, p *pgtest.Proxy) string {
			p.Stall()
			d := e.wait(ctx, 200*time.Millisecond, 6*time.Second)
			p.Resume()
			return fmt.Sprintf("nothing passes for %s", ms(d))
		}),
		server("db-hold", "a commit reaches PostgreSQL, and its answer comes seconds later", 2, func(ctx context.Context, e *env, p *pgtest.Proxy) string {
			p.HoldResponses()
			d := e.wait(ctx, 200*time.Millisecond, 4*time.Second)
			p.Resume()
			return fmt.Sprintf("answers are held back for %s", ms(d))
		}),
		server("db-half-open", "connections to PostgreSQL are closed at its end, and the server does not notice", 2, func(ctx context.Context, e *env, p *pgtest.Proxy) string {
			p.HalfClose()
			e.wait(ctx, time.Second, 4*time.Second)
			p.CloseConnections()
			return "connections are half open"
		}),
		server("db-commits", "the answers to some commits are lost, with their connections", 4, func(ctx context.Context, e *env, p *pgtest.Proxy) string {
			n := 1 + e.rand.IntN(4)
			p.DropCommitReplies(n)
			e.wait(ctx, 500*time.Millisecond, 2*time.Second)
			n -= p.Pending()
			p.DropCommitReplies(0)
			return fmt.Sprintf("%d answers to COMMIT are lost", n)
		}),
		server("db-requests", "connections break in the middle of a commit", 3, func(ctx context.Context, e *env, p *pgtest.Proxy) string {
			n := 1 + e.rand.IntN(4)
			p.CutRequests(n)
			e.wait(ctx, 500*time.Millisecond, 2*time.Second)
			n -= p.Pending()
			p.CutRequests(0)
			return fmt.Sprintf("%d connections break in the middle of a request", n)
		}),
		{Name: "db-deaf", What: "notifications of other servers' writes are lost for up to 14 seconds, on a connection that stays open; the server has to look by itself", Store: "postgres", Cuts: true, Often: 1, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			n := e.c.Back(i).DropNotifications()
			d := e.wait(ctx, 9*time.Second, 14*time.Second)
			cut := e.rec.Now() // until then the server reaches its database
			e.c.Back(i).CloseConnections()
			return outcome{what: fmt.Sprintf("between server %d and PostgreSQL %d connections hear no notification for %s", i, n, ms(d)), server: i, cut: cut}
		}},
		server("db-reorder", "what is sent on different connections to PostgreSQL passes each other, by up to 50 ms", 2, func(ctx context.Context, e *env, p *pgtest.Proxy) string {
			p.Delay(50 * time.Millisecond)
			d := e.wait(ctx, time.Second, 4*time.Second)
			p.Delay(0)
			return fmt.Sprintf("chunks are reordered for %s", ms(d))
		}),
	}
}

// failover returns a failover to a synchronous standby.
func (e *env) failover(ctx context.Context) cluster.Failover {
	return cluster.Failover{
		Hangs: e.rand.IntN(2) == 0,
		Heard: func() { e.wait(context.WithoutCancel(ctx), 6*time.Second, 8*time.Second) },
		Pause: func() { e.wait(ctx, 0, 3*time.Second) },
		Use:   func() error { return e.use(context.WithoutCancel(ctx)) },
	}
}

// use waits until every server has written to its database.
func (e *env) use(ctx context.Context) error {
	client := e.c.Client(cluster.HTTP1, false)
	defer client.CloseIdleConnections()
	for i := range e.c.Len() {
		err := e.until(ctx, func() error { return create(ctx, client, e.c.URL(i), `{"metadata":{"generateName":"used-"}}`) })
		if err != nil {
			return fmt.Errorf("server %d does not write to its database: %w", i, err)
		}
	}
	return nil
}
