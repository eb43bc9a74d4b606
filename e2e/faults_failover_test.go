package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// TestFailover takes the primary of two servers away under load: first it takes no writes for a
// while, then it crashes and its standby takes over. No server is restarted.
func TestFailover(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx := t.Context()
	primary, standby, _, url := startStandby(t)
	c := startCluster(t, url, 2)
	l := startLoad(c, 6)
	time.Sleep(500 * time.Millisecond)

	if err := primary.ReadOnly(ctx, true); err != nil {
		t.Fatal(err)
	}
	wantNoWrites(t, clients(t, c)[0])
	if err := primary.ReadOnly(ctx, false); err != nil {
		t.Fatal(err)
	}
	waitForWrite(t, c)

	primary.Crash()
	wantNoWrites(t, clients(t, c)[1])
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	waitForWrite(t, c)
	time.Sleep(500 * time.Millisecond)
	l.end()
}

// TestFailoverFromAHostThatHangs stops the primary of two servers under load without an end of its
// connections, which its system goes on to accept. Writes go on after the standby has taken over.
func TestFailoverFromAHostThatHangs(t *testing.T) {
	t.Parallel() // it mostly waits
	primary, standby, database, url := startStandby(t)
	c := startCluster(t, url, 2)
	l := startLoad(c, 6)
	time.Sleep(500 * time.Millisecond)
	primary.Suspend()
	t.Cleanup(primary.Continue)
	wantNoWrites(t, clients(t, c)[0])
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	waitForWrite(t, c)
	t.Logf("writes go on %s after the promotion", time.Since(promoted).Round(10*time.Millisecond))
	c.store = standby.URL(database) // for what looks behind the scenes
	l.end()
}

// wantNoWrites waits until a server answers 503 and when to come again, while reads
// from memory go on.
func wantNoWrites(t *testing.T, a *api) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, header, body, err := a.send(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"generateName":"refused-"}}`)
		if err != nil {
			t.Fatal(err)
		}
		if code == http.StatusServiceUnavailable {
			if header.Get("Retry-After") == "" || !strings.Contains(string(body), `"kind":"Status"`) {
				t.Errorf("%v %s", header, body)
			}
			break
		}
		// Requests in flight may have any outcome, or none that can be determined now.
		if time.Now().After(deadline) || code != http.StatusCreated && code != http.StatusGatewayTimeout {
			t.Fatalf("a write without a primary: %d %s", code, body)
		}
	}
	want(t, a, 200, http.MethodGet, configMaps+"?resourceVersion=0", "", "")
}

// TestPoolers puts PgBouncer between PostgreSQL and two servers, which start together on
// an empty database, and restarts PostgreSQL under load.
func TestPoolers(t *testing.T) {
	t.Parallel()
	needs.PgBouncer(t)
	for mode, args := range map[string][]string{"session": nil, "transaction": {"--postgres-feed=poll"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pg := startPostgres(t)
			pooler, err := pgtest.StartPooler(t.Context(), pg, mode)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pooler.Stop)
			direct := newDatabase(t, pg)
			url := pooler.URL(databaseOf(direct))
			c := startTogether(t, url, 2, args...)
			c.store = direct // for what looks behind the scenes
			a := clients(t, c)
			readAfterWrite(t, a)
			uniqueAddresses(t, a)
			watchLatency(t, c)
			l := startLoad(c, 6)
			time.Sleep(500 * time.Millisecond)
			pg.Kill()
			if err := pg.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			waitForWrite(t, c)
			c.server(0).Kill()
			c.again(0)
			waitForWrite(t, c)
			l.end()
			wantClean(t, direct)
		})
	}
}

// startTogether starts n servers at once on an empty database.
func startTogether(t *testing.T, url string, n int, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, store: url, args: append([]string{"--history-retention=1h"}, args...), all: make([]*harness.Server, n)}
	c.start(0, "sqlite:"+t.TempDir()+"/keys.db") // makes the folder of keys that all share
	c.all[0].Kill()
	var starts sync.WaitGroup
	for i := range n {
		starts.Go(func() {
			s, err := harness.Start(t.Context(), harness.Options{Store: url, Args: c.args, Dir: t.TempDir(), DataDir: c.dir})
			if err != nil {
				t.Error(err)
				return
			}
			s.EndWith(t)
			c.all[i] = s
		})
	}
	if starts.Wait(); t.Failed() {
		t.FailNow()
	}
	return c
}
