package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// fillUp writes until the store refuses, checks how, and that reads go on; makes
// room; and checks that writes go on, in the same process, with nothing lost.
func fillUp(t *testing.T, s *harness.Server, room func()) {
	t.Helper()
	a := newAPI(t, s)
	value := strings.Repeat("x", 200_000)
	post := func(i int) (int, http.Header, []byte) {
		code, header, body, err := a.send(context.Background(), http.MethodPost, configMaps, "application/json", fmt.Sprintf(`{"metadata":{"name":"full-%d"},"data":{"v":%q}}`, i, value))
		if err != nil {
			t.Fatal(err)
		}
		return code, header, body
	}
	n := 0
	for ; n < 1000; n++ {
		code, header, body := post(n)
		if code == http.StatusCreated {
			continue
		}
		if code != http.StatusServiceUnavailable || !strings.Contains(string(body), "full") || header.Get("Retry-After") == "" {
			t.Fatalf("a full disk gives %d %v %s", code, header, body)
		}
		break
	}
	if n == 0 || n == 1000 {
		t.Fatalf("the disk is full after %d objects", n)
	}
	for range 3 {
		want(t, a, 200, http.MethodGet, configMaps+"/full-0", "", "")
		want(t, a, 200, http.MethodGet, configMaps+"?limit=1", "", "")
		// A small write of the server's own may find room behind the refusal, and then writes are not refused.
		eventually(t, "the server says that its store is full", func() bool {
			if code, _, body := post(n); code != http.StatusServiceUnavailable {
				t.Errorf("a full disk gives %d %s", code, body)
			}
			code, _, err := a.do(context.Background(), http.MethodGet, "/readyz/store-writes", "", "")
			verbose := string(want(t, a, 200, http.MethodGet, "/readyz?verbose", "", ""))
			return err == nil && code == http.StatusInternalServerError && strings.Contains(verbose, "[!]store-writes: writes are refused: the store is full")
		})
	}
	room()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, _, body := post(n)
		if code == http.StatusCreated {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("with room again: %d %s", code, body)
		}
	}
	want(t, a, 200, http.MethodGet, "/readyz/store-writes", "", "")
	for i := range n + 1 {
		want(t, a, 200, http.MethodGet, fmt.Sprintf("%s/full-%d", configMaps, i), "", "")
	}
}

// TestSQLiteFull fills a file up to its limit; compacting history while the server runs
// makes room.
func TestSQLiteFull(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--sqlite-max-bytes=6000000", "--history-retention=1h"}})
	url := "sqlite:" + filepath.Join(s.DataDir, "rowlock.db")
	a := newAPI(t, s)
	want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"history"}}`)
	for i := range 5 {
		body := fmt.Sprintf(`{"data":{"v":"%d%s"}}`, i, strings.Repeat("y", 200_000))
		want(t, a, 200, http.MethodPatch, configMaps+"/history", "application/merge-patch+json", body)
	}
	fillUp(t, s, func() {
		var done struct{ DeletedRows int64 }
		if store(t, &done, "compact", "--keep", "0s", "--store", url); done.DeletedRows == 0 {
			t.Error("nothing was compacted")
		}
	})
}

// TestPostgresFull lets PostgreSQL's files grow no more, and then again.
func TestPostgresFull(t *testing.T) {
	t.Parallel()
	needs.PostgreSQL(t)
	needs.Program(t, "prlimit")
	pg, err := pgtest.Start(context.Background(), pgtest.Options{Segment: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	url := newDatabase(t, pg)
	s := harness.StartT(t, harness.Options{Store: url})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// Values that are not compressed: the table grows by the written bytes.
	if _, err := conn.Exec(t.Context(), "ALTER TABLE kv ALTER value SET STORAGE EXTERNAL"); err != nil {
		t.Fatal(err)
	}
	if err := pg.LimitFiles(6<<20 + 100); err != nil {
		t.Fatal(err)
	}
	fillUp(t, s, func() {
		if err := pg.LimitFiles(-1); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDamagedRow damages a value behind the server's back. That object alone is
// unreadable, a list reports it, and everything else works.
func TestDamagedRow(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	file := t.TempDir() + "/rowlock.db"
	for name, store := range map[string]string{"SQLite": "sqlite:" + file, "PostgreSQL": newDatabase(t, pg)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.StartT(t, harness.Options{Store: store, Args: []string{"--feature-gates=AllowUnsafeMalformedObjectDeletion=true"}})
			a := newAPI(t, s)
			for _, n := range []string{"good", "bad"} {
				want(t, a, 201, http.MethodPost, configMaps, "application/json", fmt.Sprintf(`{"metadata":{"name":%q},"data":{"v":"1"}}`, n))
			}
			s.Kill()
			damage(t, store, file)
			s, err := s.Again(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Kill)
			a = newAPI(t, s)
			want(t, a, 200, http.MethodGet, configMaps+"/good", "", "")
			want(t, a, 500, http.MethodGet, configMaps+"/bad", "", "")
			want(t, a, 500, http.MethodGet, configMaps, "", "")
			want(t, a, 200, http.MethodGet, "/api/v1/namespaces", "", "")
			want(t, a, 200, http.MethodPatch, configMaps+"/good", "application/merge-patch+json", `{"data":{"v":"2"}}`)
			want(t, a, 500, http.MethodDelete, configMaps+"/bad", "", "")
			want(t, a, 200, http.MethodDelete, configMaps+"/bad", "application/json", `{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`)
			want(t, a, 404, http.MethodGet, configMaps+"/bad", "", "")
			want(t, a, 200, http.MethodGet, configMaps, "", "")
		})
	}
}

func damage(t *testing.T, store, file string) {
	t.Helper()
	driver, source := "sqlite", file
	statement := `UPDATE kv SET value = x'7b22637574' WHERE resource = 'configmaps' AND name = 'bad'`
	if strings.HasPrefix(store, "postgres") {
		conn, err := pgx.Connect(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(t.Context(), strings.ReplaceAll(statement, "x'7b22637574'", `'\x7b22637574'`)); err != nil {
			t.Fatal(err)
		}
		return
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
