package e2e

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// TestKillServersOnPostgres kills one of two servers in a storm of writes, again and again.
func TestKillServersOnPostgres(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	c := startCluster(t, newDatabase(t, pg), 2)
	l := startLoad(c, 12)
	for round := range 4 {
		time.Sleep(700 * time.Millisecond)
		c.server(round).Kill()
		time.Sleep(300 * time.Millisecond) // the other one serves alone
		c.again(round % 2)
	}
	l.end()
}

// TestPostgresRestarts ends PostgreSQL under load, by SIGKILL and by both fast ways to shut it down, and
// starts it again, three times or for the duration of ROWLOCK_STORM (10m); then one of the servers is killed
// now and then, too, also while PostgreSQL is down. In the meantime both refuse requests that need it, and
// they recover by themselves.
func TestPostgresRestarts(t *testing.T) {
	t.Parallel()
	var storm time.Duration
	if text := os.Getenv("ROWLOCK_STORM"); text != "" {
		var err error
		if storm, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	pg := startPostgres(t)
	c := startCluster(t, newDatabase(t, pg), 2)
	l := startLoad(c, 8)
	began := time.Now()
	for round := 0; round < 3 || time.Since(began) < storm; round++ {
		time.Sleep(700*time.Millisecond + time.Duration(round%7)*100*time.Millisecond)
		switch round % 3 {
		case 0:
			pg.Crash()
		case 1:
			pg.Shutdown()
		case 2:
			pg.Kill()
		}
		if round%4 == 2 {
			wantRefusal(t, c)
		}
		killed := round%5 == 4
		if killed {
			c.server(round).Kill()
		}
		if err := pg.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if killed {
			c.again(round % 2)
		}
		waitForWrite(t, c)
		if storm > 0 && round%5 == 1 {
			c.server(round).Kill()
			time.Sleep(200 * time.Millisecond) // the other one serves alone
			c.again(round % 2)
		}
		if t.Failed() {
			break
		}
	}
	l.end()
}

// wantRefusal writes to a server whose database is away: the answer is 503 with a
// time to wait, and reads that ask for nothing newer than memory go on.
func wantRefusal(t *testing.T, c *cluster) {
	t.Helper()
	a, err := c.client(0)
	if err != nil {
		t.Fatal(err)
	}
	code, body, err := a.do(context.Background(), http.MethodGet, configMaps+"?resourceVersion=0", "", "")
	if err != nil || code != http.StatusOK {
		t.Errorf("a read from memory without a database: %d %s %v", code, body, err)
	}
	time.Sleep(300 * time.Millisecond) // else it may be part of a commit that was cut, and its outcome open
	code, header, body, err := a.send(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"generateName":"refused-"}}`)
	if err != nil || code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout || !strings.Contains(string(body), `"kind":"Status"`) {
		t.Fatalf("a write without a database: %d %s %v", code, body, err)
	}
	if code == http.StatusServiceUnavailable && header.Get("Retry-After") == "" {
		t.Errorf("a 503 without Retry-After: %v", header)
	}
	code, body, err = a.do(context.Background(), http.MethodGet, "/readyz", "", "")
	if err != nil || code == http.StatusOK {
		t.Errorf("readyz without a database: %d %s %v", code, body, err)
	}
}

// waitForWrite waits until every server takes writes.
func waitForWrite(t *testing.T, c *cluster) {
	t.Helper()
	began := time.Now()
	for i := range c.all {
		for {
			a, err := c.client(i)
			if err != nil {
				t.Fatal(err)
			}
			code, body, err := a.do(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"generateName":"probe-"}}`)
			if err == nil && code == http.StatusCreated {
				break
			}
			if time.Since(began) > patience {
				t.Fatalf("a server does not recover: %d %s %v\n%s", code, body, err, c.server(i).Log())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	t.Logf("writes again after %v", time.Since(began).Round(time.Millisecond))
}

// TestProxyFaults puts one server behind a network that cuts, stalls, breaks
// requests in the middle and loses the answers to COMMIT.
func TestProxyFaults(t *testing.T) {
	t.Parallel()
	_, proxy, c := behindProxy(t)
	l := startLoad(c, 8)
	for _, fault := range []struct {
		name string
		do   func()
	}{
		{"cut", proxy.CloseConnections},
		{"lose answers", func() { proxy.DropCommitReplies(5) }},
		{"cut requests", func() { proxy.CutRequests(5) }},
		{"stall", func() { proxy.Stall(); time.Sleep(time.Second); proxy.Resume() }},
		{"lose answers and cut", func() { proxy.DropCommitReplies(2); time.Sleep(50 * time.Millisecond); proxy.CloseConnections() }},
	} {
		before := l.acked.Load()
		fault.do()
		time.Sleep(700 * time.Millisecond)
		for deadline := time.Now().Add(patience); proxy.Pending() > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d faults did not come to pass", fault.name, proxy.Pending())
			}
		}
		waitForWrite(t, c)
		t.Logf("%s: %d acknowledged", fault.name, l.acked.Load()-before)
	}
	l.end()
}

// behindProxy returns a cluster of two servers on a new database; the second one reaches it through
// the proxy. Only the test writes ConfigMaps.
func behindProxy(t *testing.T) (pg *pgtest.Server, proxy *pgtest.Proxy, c *cluster) {
	t.Helper()
	pg = startPostgres(t)
	url := newDatabase(t, pg)
	proxy, err := pgtest.NewProxy(pg.Port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	c = startCluster(t, url, 1, noRootCA)
	c.all = append(c.all, nil)
	c.start(1, proxy.URL(databaseOf(url)))
	return pg, proxy, c
}

// databaseOf returns the name of the database in a URL of pgtest.
func databaseOf(url string) string {
	return url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
}
