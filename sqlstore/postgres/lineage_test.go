package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// takeBack deletes the rows after a revision, as an administrator could with psql.
func takeBack(to int64) string {
	return fmt.Sprintf(`BEGIN; DELETE FROM kv WHERE revision > %[1]d; UPDATE kv SET superseded_revision = NULL WHERE superseded_revision > %[1]d;
UPDATE kv_meta SET number = %[1]d WHERE key = 'revision'; COMMIT`, to)
}

func writeMany(t *testing.T, d sqlstore.Driver, name string, n int) (last int64) {
	t.Helper()
	for i := range n {
		last = must(t, d, createTxn(fmt.Sprintf("%s%d", name, i), `"x"`))[0].Revisions[0]
	}
	return last
}

// applied writes one object, as often as it takes.
func applied(t *testing.T, d *postgres.Driver, name string) int64 {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out, err := d.Apply(t.Context(), []sqlstore.Txn{createTxn(name, `"x"`)}, time.Now())
		if err == nil && out[0].Err == nil {
			return out[0].Revisions[0]
		}
		if err == nil {
			t.Fatal(out[0].Err)
		}
		_, _, _ = d.Resolve(t.Context()) // where it was cut
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// wantReturned checks that a driver has noticed that its database went back, and that watches end.
func wantReturned(t *testing.T, d *postgres.Driver, count, shown, lost int64) {
	t.Helper()
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := d.Rewinds()
	if d.RewindCount() != count || r.Count != count || r.Last.Lost() != lost {
		t.Errorf("the driver noticed %+v, want %d times with %d lost revisions", r, count, lost)
	}
	if b.Floor <= shown {
		t.Errorf("the bounds are %+v, a watch from revision %d would go on", b, shown)
	}
	select {
	case <-d.RewindNotices():
	default:
		t.Error("no server notices")
	}
}

// TestRowsAreTakenBack: the last revisions are deleted below two servers. Neither allocates one of them again.
func TestRowsAreTakenBack(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	a, b := db.Open(t).(*postgres.Driver), db.Open(t).(*postgres.Driver)
	writeMany(t, a, "kept", 5)
	last := writeMany(t, a, "lost", 7)
	if _, err := b.Bounds(t.Context()); err != nil { // it has shown them too
		t.Fatal(err)
	}
	db.Exec(t, takeBack(5))
	if next := applied(t, b, "next"); next < last+sqlstore.RelaxedReserve {
		t.Errorf("the next write has revision %d, and %d was shown", next, last)
	}
	wantReturned(t, b, 1, last, 7)
	wantReturned(t, a, 1, last, 7)
	if before, after := applied(t, a, "lost0"), applied(t, b, "lost1"); after != before+1 {
		t.Errorf("the servers write at %d and %d", before, after)
	}
	storetest.CheckTable(t, a)

	// A look notices it as well as a write.
	head := writeMany(t, a, "again", 3)
	db.Exec(t, takeBack(head-2))
	wantReturned(t, a, 2, head, 2)
	if c := db.Open(t).(*postgres.Driver); c.RewindCount() != 0 {
		t.Errorf("a server that starts afterwards noticed %+v", c.Rewinds())
	}
}

// TestStandbyBecomesSynchronous: Patroni makes a new standby synchronous some time after a failover. Servers whose clients only
// write, so that they do not read the bounds, learn of that with the leads before it is promoted in turn.
func TestStandbyBecomesSynchronous(t *testing.T) {
	primary, standby, db := pair(t)
	a, b := db.Open(t).(*postgres.Driver), db.Open(t).(*postgres.Driver)
	set := func(names string, want bool, look func(d *postgres.Driver) error) {
		t.Helper()
		admin := database{url: primary.URL("postgres")}
		admin.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
		admin.Exec(t, "SELECT pg_reload_conf()")
		for end := time.Now().Add(2 * time.Minute); a.Synchronous() != want || b.Synchronous() != want; time.Sleep(10 * time.Millisecond) {
			for _, d := range []*postgres.Driver{a, b} {
				if err := look(d); err != nil {
					t.Fatal(err)
				}
			}
			if time.Now().After(end) {
				t.Fatalf("with synchronous_standby_names = '%s' the servers believe %t, %t", names, a.Synchronous(), b.Synchronous())
			}
		}
	}
	last := writeMany(t, a, "a", 3)
	set("", false, func(d *postgres.Driver) error { _, err := d.Bounds(t.Context()); return err })
	if _, _, ok, err := a.Lead(t.Context(), "x"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	set("*", true, func(d *postgres.Driver) error {
		if d == a {
			return nil // it renews its lead
		}
		_, _, _, err := d.Lead(t.Context(), "x")
		return err
	})
	primary.Crash()
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := applied(t, b, "next"); next != last+1 || b.RewindCount() != 0 {
		t.Errorf("the next write has revision %d, want %d; the server noticed %+v", next, last+1, b.Rewinds())
	}
}

// TestReadersAreShownRevisions: a server read the last revision from the table, in any way, before the database lost it. It does
// not give it again.
func TestReadersAreShownRevisions(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	a, b := db.Open(t).(*postgres.Driver), db.Open(t).(*postgres.Driver)
	for name, read := range map[string]func(key sqlstore.Key, at int64) error{
		"changes": func(_ sqlstore.Key, at int64) error { _, err := b.Changes(t.Context(), at-1, 100, false); return err },
		"live": func(sqlstore.Key, int64) error {
			_, err := b.Scan(t.Context(), sqlstore.ScanRequest{Resource: "pods", Limit: 100})
			return err
		},
		"moment": func(_ sqlstore.Key, at int64) error {
			_, err := b.Scan(t.Context(), sqlstore.ScanRequest{Resource: "pods", Revision: at, Limit: 100})
			return err
		},
		"one":  func(key sqlstore.Key, _ int64) error { _, err := b.Read(t.Context(), key, 0); return err },
		"then": func(key sqlstore.Key, at int64) error { _, err := b.Read(t.Context(), key, at); return err },
		"past": func(key sqlstore.Key, _ int64) error { _, err := b.Past(t.Context(), key, 0, 10); return err },
	} {
		last := writeMany(t, a, name, 2)
		if err := read(sqlstore.Key{Resource: "pods", Namespace: "default", Name: name + "1"}, last); err != nil {
			t.Fatal(name, err)
		}
		db.Exec(t, takeBack(last-1))
		if next := applied(t, b, name+"-next"); next < last+sqlstore.RelaxedReserve {
			t.Errorf("%s: the next write has revision %d, and the server has read %d", name, next, last)
		}
		if _, err := a.Bounds(t.Context()); err != nil { // it notices as well
			t.Fatal(err)
		}
	}
}

// TestThePastIsNotThatOfLostRevisions: a server has shown a revision that the database loses. It does not answer with an earlier state
// when a client asks for the past as of that revision, neither before it notices the loss nor afterwards.
func TestThePastIsNotThatOfLostRevisions(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	d := db.Open(t).(*postgres.Driver)
	key := sqlstore.Key{Resource: "pods", Namespace: "default", Name: "a"}
	if _, err := d.Retain(t.Context(), sqlstore.Floors{Past: map[string]int64{"": 0}}); err != nil {
		t.Fatal(err)
	}
	last := writeMany(t, d, "other", 3)
	kept := applied(t, d, "a")
	lost := writeMany(t, d, "lost", 2)
	if rows, err := d.Past(t.Context(), key, lost+1, 1); err != nil || len(rows) != 1 || rows[0].Revision != kept {
		t.Fatalf("as of %d: %v, %v", lost, rows, err)
	}
	db.Exec(t, takeBack(kept))
	var future *sqlstore.FutureError
	if rows, err := d.Past(t.Context(), key, lost+1, 1); !errors.As(err, &future) {
		t.Errorf("as of %d, which is lost: %v, %v", lost, rows, err)
	}
	applied(t, d, "next") // the driver leaves revisions out
	var gone *sqlstore.CompactedError
	if rows, err := d.Past(t.Context(), key, lost+1, 1); !errors.As(err, &gone) {
		t.Errorf("as of %d, which was left out: %v, %v", lost, rows, err)
	}
	if rows, err := d.Past(t.Context(), key, kept+1, 1); err != nil || len(rows) != 1 || rows[0].Revision != kept {
		t.Errorf("as of %d: %v, %v", kept, rows, err)
	}
	if rows, err := d.Past(t.Context(), key, last+1, 1); err != nil || len(rows) != 0 {
		t.Errorf("as of %d: %v, %v", last, rows, err)
	}
}

// TestGoesBack holds the sinks of two servers to the table, each time that it is taken back.
func TestGoesBack(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	storetest.Rewound(t, db, func(to int64) { db.Exec(t, takeBack(to)) })
}

// TestCopiesAreOtherDatabases: a copy takes the place of a database. A server that starts on it goes on where it is; one that
// used the original goes on above what that may have given.
func TestCopiesAreOtherDatabases(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	admin := database{url: server.URL("postgres")}
	name := db.url[strings.LastIndex(db.url, "/")+1 : strings.Index(db.url, "?")]
	first := db.Open(t).(*postgres.Driver)
	last := writeMany(t, first, "a", 3)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	db.Ended(t)
	for _, copied := range []string{"one", "two"} {
		admin.Exec(t, fmt.Sprintf("CREATE DATABASE %s_%s TEMPLATE %[1]s", name, copied))
	}
	starts := database{url: server.URL(name + "_one")}.Open(t).(*postgres.Driver)
	if next := applied(t, starts, "next"); next != last+1 || starts.RewindCount() != 0 {
		t.Errorf("a server that starts on a copy goes on at %d, want %d: %+v", next, last+1, starts.Rewinds())
	}
	runs := db.Open(t).(*postgres.Driver)
	if n := runs.RewindCount(); n != 0 {
		t.Fatalf("a database that is as it was went back %d times: %+v", n, runs.Rewinds())
	}
	last = writeMany(t, runs, "lost", 4)
	admin.Exec(t, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
	admin.Exec(t, fmt.Sprintf("ALTER DATABASE %s_two RENAME TO %[1]s", name))
	if next := applied(t, runs, "next"); next < last+sqlstore.RelaxedReserve {
		t.Errorf("the next write has revision %d", next)
	}
	wantReturned(t, runs, 1, last, 4)
}

// TestSkipRevisions leaves out the requested number, and running servers notice.
func TestSkipRevisions(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	d, by := db.Open(t).(*postgres.Driver), db.Open(t).(*postgres.Driver)
	last := writeMany(t, d, "a", 3)
	from, to, err := by.SkipRevisions(t.Context(), 500)
	if err != nil || from != last || to != last+500 {
		t.Fatalf("skipped from %d to %d, %v", from, to, err)
	}
	wantReturned(t, d, 1, last, 0)
	if next := applied(t, d, "next"); next != to+1 {
		t.Errorf("the next write has revision %d, want %d", next, to+1)
	}
	if from, to, err = by.SkipRevisions(t.Context(), 0); err != nil || to < from+sqlstore.RelaxedReserve {
		t.Errorf("without a number it skips from %d to %d, %v", from, to, err)
	}
}

// TestOrdinaryRoles: a role with no other rights than docs/postgres.md gives it knows which database it uses.
func TestOrdinaryRoles(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	db.Open(t)
	db.Exec(t, `CREATE ROLE plain LOGIN; GRANT USAGE ON SCHEMA public TO plain; GRANT SELECT, INSERT, UPDATE, DELETE ON kv, kv_meta, kv_lead, kv_packed, kv_marks, kv_alive TO plain; GRANT SELECT ON schema_migrations TO plain`)
	t.Cleanup(func() { db.Exec(t, "DROP OWNED BY plain; DROP ROLE plain") })
	plain := database{url: strings.Replace(db.url, "postgres@", "plain@", 1)}
	d := plain.Open(t).(*postgres.Driver)
	last := writeMany(t, d, "a", 2)
	if place := d.Place(); !strings.Contains(place, "timeline 1 ") || strings.Contains(place, "?") {
		t.Errorf("the database is %s", place)
	}
	db.Exec(t, takeBack(1))
	wantReturned(t, d, 1, last, 1)
}

// pair returns a primary and its synchronous standby, and a database that both have.
func pair(t *testing.T) (primary, standby *pgtest.Server, db database) {
	t.Helper()
	ctx := t.Context()
	primary, err := pgtest.Start(context.Background(), pgtest.Options{Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Stop)
	if _, err := primary.CreateDB(ctx, "store"); err != nil {
		t.Fatal(err)
	}
	if standby, err = primary.Standby(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return primary, standby, database{url: fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/store?sslmode=disable", primary.Port, standby.Port)}
}

// TestPromotedSynchronousStandby: a standby that commits waited for lacks nothing, and no client has to list again.
func TestPromotedSynchronousStandby(t *testing.T) {
	primary, standby, db := pair(t)
	a, b := db.Open(t).(*postgres.Driver), db.Open(t).(*postgres.Driver)
	last := writeMany(t, a, "a", 3)
	if _, err := b.Bounds(t.Context()); err != nil {
		t.Fatal(err)
	}
	primary.Crash()
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := applied(t, a, "next"); next != last+1 {
		t.Errorf("the next write has revision %d, want %d", next, last+1)
	}
	if next := applied(t, b, "again"); next != last+2 || a.RewindCount() != 0 || b.RewindCount() != 0 {
		t.Errorf("the next write has revision %d, want %d; the servers noticed %+v, %+v", next, last+2, a.Rewinds(), b.Rewinds())
	}
	if place := b.Place(); !strings.Contains(place, "timeline 2 ") {
		t.Errorf("the database is %s", place)
	}
}

// TestPromotedStandby: a standby that lacks commits is promoted below two servers, of which one has met them; then
// the old primary comes back, first in the URL.
func TestPromotedStandby(t *testing.T) {
	ctx := t.Context()
	primary, standby, db := pair(t)
	knows, ignorant := db.Open(t).(*postgres.Driver), db.Open(t).(*postgres.Driver)
	writeMany(t, knows, "kept", 3)
	if _, err := ignorant.Bounds(ctx); err != nil {
		t.Fatal(err)
	}
	if err := standby.StopReplication(ctx, primary); err != nil {
		t.Fatal(err)
	}
	// A process that has seen none of the lost commits knows at least that commits wait for no standby.
	for end := time.Now().Add(2 * time.Minute); ignorant.Synchronous(); {
		if _, err := ignorant.Bounds(ctx); err != nil || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	last := writeMany(t, knows, "lost", 45)
	primary.Crash()
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	if next := applied(t, ignorant, "next"); next <= last {
		t.Fatalf("the next write has revision %d, and %d was shown", next, last)
	}
	applied(t, knows, "lost0")
	wantReturned(t, ignorant, 1, last, 0)
	wantReturned(t, knows, 1, last, 45)

	if err := primary.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, d := range []*postgres.Driver{knows, ignorant, db.Open(t).(*postgres.Driver)} {
		d.CheckPrimaries(ctx)
		d.Reconnect()
		applied(t, d, fmt.Sprintf("after%d", i))
		if r := d.Rewinds(); r.Others == 0 || !strings.Contains(r.Other, "old primary") {
			t.Errorf("server %d noticed %+v", i, r)
		}
	}
	conn, err := pgx.Connect(ctx, primary.URL("store"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var head int64
	if err := conn.QueryRow(ctx, `SELECT number FROM kv_meta WHERE key = 'revision'`).Scan(&head); err != nil || head != last {
		t.Errorf("the old primary is at revision %d, %v: want %d, as it was", head, err, last)
	}
	storetest.CheckTable(t, knows)
}

// TestCrashLosesNothing: PostgreSQL crashes, and is the same database afterwards: no client has to list again.
func TestCrashLosesNothing(t *testing.T) {
	pg, err := pgtest.Start(context.Background(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	url, err := pg.CreateDB(t.Context(), "store")
	if err != nil {
		t.Fatal(err)
	}
	d := database{url: url}.Open(t).(*postgres.Driver)
	last := writeMany(t, d, "a", 3)
	pg.Kill()
	if err := pg.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if next := applied(t, d, "next"); next != last+1 || d.RewindCount() != 0 {
		t.Errorf("the next write has revision %d, %+v", next, d.Rewinds())
	}
}

// TestUnnamedCluster: where a service does not tell which cluster it is, the store goes without, in an empty database too.
// A passing error of that query refuses the connection: the row would name no cluster from then on.
func TestUnnamedCluster(t *testing.T) {
	for code, bare := range map[string]bool{"42501": true, "57014": false} {
		for _, used := range []bool{false, true} {
			db := newDatabase(t, postgres.Config{})
			if used {
				db.Open(t).Close()
			}
			db.Exec(t, fmt.Sprintf(`CREATE FUNCTION public.pg_control_system(OUT system_identifier bigint) LANGUAGE plpgsql AS $$BEGIN RAISE 'not now' USING ERRCODE = '%s'; END$$`, code))
			d, err := postgres.Open(t.Context(), db.url+"&search_path=public,pg_catalog", db.cfg)
			if (err == nil) != bare {
				t.Errorf("%s, used %t: the error is %v", code, used, err)
			}
			if err != nil {
				continue
			}
			if _, err := d.Bounds(t.Context()); err != nil || !strings.Contains(d.Place(), "cluster ?") {
				t.Errorf("%s, used %t: the database is %s, %v", code, used, d.Place(), err)
			}
			d.Close()
		}
	}
}
