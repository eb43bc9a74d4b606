package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// writer writes until it is ended, as fast as it is answered, and waits for the outcome of each write.
type writer struct {
	done  atomic.Int64
	loops sync.WaitGroup
	end   context.CancelFunc
}

func startWriter(t *testing.T, d sqlstore.Driver, name string) *writer {
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{end: cancel}
	w.loops.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			out, err := d.Apply(ctx, []sqlstore.Txn{createTxn(fmt.Sprint(name, "-", i), "x")}, at)
			for committed := false; errors.Is(err, sqlstore.ErrUncertain) && ctx.Err() == nil; {
				var unknown error
				if out, committed, unknown = d.Resolve(ctx); unknown != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				if err = nil; !committed {
					err = sqlstore.ErrUnavailable
				}
			}
			if err == nil && out[0].Err == nil {
				w.done.Add(1)
			} else if err != nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	// The pool is under load at the same time.
	for range 4 {
		w.loops.Go(func() {
			for ctx.Err() == nil {
				if _, err := d.Bounds(ctx); err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	t.Cleanup(w.stop)
	return w
}

func (w *writer) stop() {
	w.end()
	w.loops.Wait()
}

// goesOn waits until it has written again.
func (w *writer) goesOn(t *testing.T) {
	t.Helper()
	before := w.done.Load()
	for end := time.Now().Add(2 * time.Minute); w.done.Load() < before+3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no write goes on")
		}
	}
}

// TestAHostThatHangs stops the primary of two drivers under load: its system still accepts connections, and
// nothing is answered. Once the standby is promoted writes go on there.
func TestAHostThatHangs(t *testing.T) {
	t.Parallel() // it mostly waits
	primary, err := pgtest.Start(t.Context(), pgtest.Options{Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Stop)
	if _, err := primary.CreateDB(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	t.Cleanup(primary.Continue)
	url := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/one?sslmode=disable", primary.Port, standby.Port)
	var writers []*writer
	for i := range 2 {
		writers = append(writers, startWriter(t, database{url, postgres.Config{}}.Open(t), fmt.Sprint("w", i)))
	}
	for _, w := range writers {
		w.goesOn(t)
	}
	primary.Suspend()
	// The write under way on each is not answered, and no other server takes any.
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	for _, w := range writers {
		w.goesOn(t)
		t.Logf("writes go on %s after the promotion", time.Since(promoted).Round(10*time.Millisecond))
	}
	for _, w := range writers {
		w.stop()
	}
	storetest.CheckTable(t, database{standby.URL("one"), postgres.Config{}}.Open(t))
}

// TestHostsThatAnswerNothing has connections to the first host go silent in each way that a network knows,
// and the second one begin to take writes while they are.
func TestHostsThatAnswerNothing(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]func(t *testing.T, first *pgtest.Proxy){
		"accepted and not answered": func(_ *testing.T, first *pgtest.Proxy) { first.Stall() },
		"not accepted": func(t *testing.T, first *pgtest.Proxy) {
			first.Stall()
			fillBacklog(t, first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := newDatabase(t, postgres.Config{})
			first, err := pgtest.NewProxy(server.Port)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(first.Close)
			port, err := pgtest.FreePort() // without a listener before the promotion
			if err != nil {
				t.Fatal(err)
			}
			name := direct.url[strings.LastIndex(direct.url, "/")+1 : strings.Index(direct.url, "?")]
			url := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable", first.Port, port, name)
			d := database{url, postgres.Config{}}.Open(t)
			w := startWriter(t, d, "w")
			w.goesOn(t)
			silent(t, first)
			for errors.Is(bounds(t, d), nil) { // until it is noticed
				time.Sleep(10 * time.Millisecond)
			}
			attempts := first.Accepted()
			second, err := pgtest.NewProxyAt(port, server.Port)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(second.Close)
			w.goesOn(t)
			w.stop()
			if n := first.Accepted() - attempts; n > 20 {
				t.Errorf("%d connections were made to the host that answers nothing", n)
			}
			// The first host holds sessions of the former connections, and the second those of the pool.
			if err := bounds(t, d); err != nil {
				t.Errorf("after writes went on: %v", err)
			}
			storetest.CheckTable(t, direct.Open(t))
		})
	}
}

func bounds(t *testing.T, d sqlstore.Driver) error {
	_, err := d.Bounds(t.Context())
	return err
}

// fillBacklog connects until the system answers no more, as it does where packets are dropped.
func fillBacklog(t *testing.T, p *pgtest.Proxy) {
	t.Helper()
	if err := p.Unresponsive(); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", p.Port), 200*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the system accepts all that comes")
}

// TestSocketsThatRefuse: where all hosts are folders of sockets and each refuses, the search ends with the last refusal and
// not with connect_timeout.
func TestSocketsThatRefuse(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	one, two := t.TempDir(), t.TempDir()
	d, err := postgres.Open(ctx, "postgres:///one?host="+one+","+two+"&user=postgres&connect_timeout=600&sslmode=disable", postgres.Config{})
	if err == nil {
		d.Close()
	}
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), two) {
		t.Errorf("the error is %v", err)
	}
}
