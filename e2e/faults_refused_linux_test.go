package e2e

import (
	"context"
	"database/sql"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/rowlock/rowlock/e2e/harness"
)

// refused has something in the database's way, and holds that clients get 503, that the log and the check have the
// database's words, once, and that all is well again when it is over, in the same process.
func refused(t *testing.T, s *harness.Server, words string, begin, end func()) {
	t.Helper()
	a := newAPI(t, s)
	post := func() (int, http.Header, []byte) {
		code, header, body, err := a.send(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"generateName":"refused-"}}`)
		if err != nil {
			t.Fatal(err)
		}
		return code, header, body
	}
	if code, _, body := post(); code != http.StatusCreated {
		t.Fatalf("before: %d %s", code, body)
	}
	begin()
	var posts sync.WaitGroup
	for range 3 {
		posts.Go(func() {
			code, header, body, err := a.send(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"generateName":"refused-"}}`)
			if err != nil {
				t.Error(err)
				return
			}
			if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
				t.Errorf("while it lasts: %d %v %s", code, header, body)
			}
			if strings.Contains(string(body), words) {
				t.Errorf("a client sees the database's text: %s", body)
			}
		})
	}
	posts.Wait()
	if check := string(want(t, a, 500, http.MethodGet, "/readyz/store-writes", "", "")); !strings.Contains(check, words) {
		t.Errorf("the check says %q", check)
	}
	if all := string(want(t, a, 200, http.MethodGet, "/readyz?verbose", "", "")); !strings.Contains(all, "[!]store-writes: writes are refused: ") || strings.Contains(all, words) {
		t.Errorf("the server's health is %s", all)
	}
	if metrics := string(want(t, a, 200, http.MethodGet, "/metrics", "", "")); !strings.Contains(metrics, `rowlock_store_refusing{`) || !strings.Contains(metrics, `rowlock_store_refusals_total{`) {
		t.Error("no metric counts it")
	}
	logged(t, s, words)
	end()
	eventually(t, "writes go on", func() bool { code, _, _ := post(); return code == http.StatusCreated })
	// Refused upkeep fails the check until it is done.
	eventually(t, "the check is well again", func() bool {
		code, _, err := a.do(t.Context(), http.MethodGet, "/readyz/store-writes", "", "")
		return err == nil && code == http.StatusOK
	})
	logged(t, s, "the store takes writes again")
	if n := strings.Count(s.Log(), "the store takes no writes"); n != 1 {
		t.Errorf("%d lines say that it began", n)
	}
}

// TestSQLiteRefused: another program has the lock; the process may let no file grow.
func TestSQLiteRefused(t *testing.T) {
	t.Parallel()
	t.Run("lock", func(t *testing.T) {
		t.Parallel()
		s := harness.StartT(t, harness.Options{})
		db, err := sql.Open("sqlite", filepath.Join(s.DataDir, "rowlock.db")+"?_pragma=busy_timeout(60000)")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run := func(text string) func() {
			return func() {
				if _, err := conn.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
		}
		refused(t, s, "database is locked", run("BEGIN IMMEDIATE"), run("ROLLBACK"))
	})
	t.Run("limit of the process", func(t *testing.T) {
		t.Parallel()
		s := harness.StartT(t, harness.Options{})
		limit := func(soft uint64) func() { return func() { limitOf(t, s.Pid(), unix.RLIMIT_FSIZE, soft) } }
		refused(t, s, "disk I/O error (778)", limit(1000), limit(unix.RLIM_INFINITY))
	})
}

// TestPostgresRefused: a right is taken away, and given back.
func TestPostgresRefused(t *testing.T) {
	t.Parallel()
	url := newDatabase(t, sharedPostgres(t))
	s := harness.StartT(t, harness.Options{Store: url})
	run := func(text string) func() {
		return func() {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			if _, err := conn.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused(t, s, "does not exist (SQLSTATE 42P01)", run("ALTER TABLE kv RENAME TO kv_away"), run("ALTER TABLE kv_away RENAME TO kv"))
}

// TestDescriptorsUsedUp: new connections wait, clients that are connected learn the reason from the health checks, and both go on
// once the server has file descriptors again.
func TestDescriptorsUsedUp(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	a := newAPI(t, s)
	want(t, a, 200, http.MethodGet, "/readyz", "", "")
	limitOf(t, s.Pid(), unix.RLIMIT_NOFILE, 3) // fewer than there are
	var waiting []net.Conn
	defer func() {
		for _, c := range waiting {
			c.Close()
		}
	}()
	for range 3 {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.URL, "https://"), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, c)
	}
	logged(t, s, "too many open files")
	if check := string(want(t, a, 500, http.MethodGet, "/readyz/connections", "", "")); !strings.Contains(check, "too many open files") {
		t.Errorf("the check says %q", check)
	}
	limitOf(t, s.Pid(), unix.RLIMIT_NOFILE, 4096)
	logged(t, s, "connections are accepted again")
	want(t, newAPI(t, s), 200, http.MethodGet, "/readyz", "", "")
}

// limitOf sets a limit of a process that runs, which can be raised again.
func limitOf(t *testing.T, pid, resource int, soft uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = min(soft, limit.Max)
	if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
		t.Fatal(err)
	}
}
