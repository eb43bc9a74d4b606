package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// held keeps a lock for as long as a session's transaction lasts.
func held(name, words, statement string, reads bool) func(storetest.Database) storetest.Refusing {
	return func(db storetest.Database) storetest.Refusing {
		return storetest.Refusing{Name: name, Kind: sqlstore.KindBusy, Words: words, Reads: reads, Begin: func(t *testing.T) func(*testing.T) {
			conn, err := pgx.Connect(t.Context(), db.(granted).url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close(context.Background()) })
			if _, err := conn.Exec(t.Context(), "BEGIN; "+statement); err != nil {
				t.Fatal(err)
			}
			return func(t *testing.T) {
				if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
					t.Fatal(err)
				}
			}
		}}
	}
}

// raising returns a trigger that answers each insert with an SQLSTATE.
func raising(code string, kind sqlstore.Kind) func(storetest.Database) storetest.Refusing {
	words := "words of PostgreSQL"
	return storetest.BySQL(code, kind, words, fmt.Sprintf(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '%s', MESSAGE = '%s'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON kv FOR EACH ROW EXECUTE FUNCTION refuse()`, code, words), `DROP TRIGGER refuse ON kv`)
}

// TestRefusals: whatever an administrator or the server does to the database, the store reports with PostgreSQL's text.
func TestRefusals(t *testing.T) {
	fresh := func(t testing.TB) storetest.Database {
		return asOrdinary(t, newDatabase(t, postgres.Config{LockTimeout: 20 * time.Millisecond}))
	}
	storetest.Refusals(t, fresh, []func(storetest.Database) storetest.Refusing{
		held("LOCK TABLE", "lock timeout", "LOCK TABLE kv IN SHARE MODE", false),
		held("row lock on the counter", "lock timeout", "SELECT number FROM kv_meta WHERE key = 'revision' FOR UPDATE", false),
		held("LOCK TABLE, for reads", "lock timeout", "LOCK TABLE kv IN ACCESS EXCLUSIVE MODE", true),
		storetest.BySQL("REVOKE INSERT", sqlstore.KindRefused, "permission denied for table kv", `REVOKE INSERT ON kv FROM ordinary`, `GRANT INSERT ON kv TO ordinary`),
		storetest.BySQL("renamed table", sqlstore.KindRefused, "does not exist (SQLSTATE 42P01)", `ALTER TABLE kv RENAME TO kv_before`, `ALTER TABLE kv_before RENAME TO kv`),
		raising("54000", sqlstore.KindRefused), // like PostgreSQL's error for wraparound
		raising("P0001", sqlstore.KindRefused),
		raising("53100", sqlstore.KindFull),
		raising("XX000", sqlstore.KindRefused),
		raising("XX001", sqlstore.KindDamaged),
		raising("58030", sqlstore.KindUnavailable),
		func(db storetest.Database) storetest.Refusing {
			r := storetest.BySQL("REVOKE SELECT, for reads", sqlstore.KindRefused, "permission denied for table kv", `REVOKE SELECT ON kv FROM ordinary`, `GRANT SELECT ON kv TO ordinary`)(db)
			r.Reads = true
			return r
		},
	})
}

// granted is a database that its driver uses as a role that owns nothing, with the rights of docs/postgres.md.
type granted struct{ database }

func (g granted) Open(t testing.TB) sqlstore.Driver {
	t.Helper()
	return database{strings.Replace(g.url, "//postgres@", "//ordinary@", 1), g.cfg}.Open(t)
}

func asOrdinary(t testing.TB, d database) storetest.Database {
	t.Helper()
	if err := d.Open(t).Close(); err != nil { // which makes the tables
		t.Fatal(err)
	}
	d.Exec(t, `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ordinary') THEN CREATE ROLE ordinary LOGIN; END IF; END $$;
GRANT USAGE ON SCHEMA public TO ordinary; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ordinary`)
	return granted{d}
}

// TestStates: of each class of SQLSTATEs, and of those that differ from theirs, it is known whether the same may be tried again, and
// whose matter it is.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		kind  sqlstore.Kind
		codes []string
	}{
		{sqlstore.KindUnavailable, []string{
			"08000", "08003", "08006", "08001", "08004", "08007", "08P01", "25000", "25001", "25P01", "25P02", "25P03", "25P04", "26000", "28000", "28P01", "3D000", "42P05",
			"53000", "53200", "53300", "55000", "55P02", "57000", "57P01", "57P02", "57P03", "57P04", "57P05", "58000", "58030", "58P01", "F0000", "F0001",
		}},
		{sqlstore.KindReadOnly, []string{"25006"}},
		{sqlstore.KindBusy, []string{"40000", "40001", "40P01", "55006", "55P03", "57014", "72000"}},
		{sqlstore.KindUncertain, []string{"40003"}},
		{sqlstore.KindFull, []string{"53100", "53400"}},
		{sqlstore.KindDamaged, []string{"XX001", "XX002"}},
		{sqlstore.KindRefused, []string{
			"03000", "09000", "0A000", "0B000", "0F000", "0L000", "0LP01", "0P000", "0Z000", "20000", "21000", "23505", "24000", "27000", "2B000", "2BP01", "2D000", "2F000", "34000", "38000", "39000", "3B000", "3F000",
			"42000", "42501", "42601", "42703", "42704", "42883", "42P01", "42P06", "42P07", "42804", "42809", "42846", "54000", "54001", "54011", "54023", "HV000", "P0000", "P0001", "P0004", "XX000", "ZZ999", "",
		}},
		{sqlstore.KindRejected, []string{"22000", "22001", "22003", "22021", "22P02", "22P05", "23000", "23001", "23502", "23503", "23514", "23P01", "40002", "44000"}},
	} {
		for _, code := range c.codes {
			for _, severity := range []string{"ERROR", "FATAL"} {
				err := postgres.ErrorOf(&pgconn.PgError{Code: code, Severity: severity, SeverityUnlocalized: severity, Message: "in PostgreSQL's words"})
				if kind := sqlstore.KindOf(err); kind != c.kind || errors.Is(err, sqlstore.ErrTooLarge) {
					t.Errorf("%s (%v) is %q, want %q", code, err, kind, c.kind)
				}
			}
		}
	}
	for routine, kind := range map[string]sqlstore.Kind{"mdextend": sqlstore.KindFull, "mdzeroextend": sqlstore.KindFull, "mdread": sqlstore.KindRefused} {
		err := postgres.ErrorOf(&pgconn.PgError{Code: "XX000", File: "md.c", Routine: routine, Message: "could not extend file: Disk quota exceeded"})
		if got := sqlstore.KindOf(err); got != kind {
			t.Errorf("XX000 of %s is %q, want %q", routine, got, kind)
		}
	}
	if err := postgres.ErrorOf(&pgconn.PgError{Code: "25006"}); !errors.Is(err, sqlstore.ErrUnavailable) {
		t.Errorf("a standby does not have another server looked for: %v", err)
	}
	if err := postgres.ErrorOf(&pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}); sqlstore.KindOf(err) != sqlstore.KindBusy {
		t.Errorf("a statement of a table that was changed is not tried again: %v", err)
	}
}

// TestLongKey: a key that is too long for an index fails one client's write, and does not report that the store refuses writes.
func TestLongKey(t *testing.T) {
	d := newDatabase(t, postgres.Config{}).Open(t)
	name := make([]byte, 12_000)
	for i := range name { // which does not compress
		name[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[(i*i*7+i/36*11+i*i*i/1009)%36]
	}
	_, err := d.Apply(t.Context(), []sqlstore.Txn{createTxn(string(name), "{}")}, at)
	if !errors.Is(err, sqlstore.ErrTooLarge) || sqlstore.KindOf(err) != "" {
		t.Errorf("a key of 12,000 bytes gives %v", err)
	}
}

// TestMigrationHandsRightsOver: a role that may use the tables there were may use those that a migration adds, and no role
// gets more than it has on kv.
func TestMigrationHandsRightsOver(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	if err := db.Open(t).Close(); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, `DROP TABLE kv_packed, kv_marks, kv_alive CASCADE; UPDATE schema_migrations SET version = 5;
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ordinary') THEN CREATE ROLE ordinary LOGIN; END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'Audi"tor') THEN CREATE ROLE "Audi""tor"; END IF;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON kv, kv_meta, kv_lead TO ordinary; GRANT SELECT ON kv TO "Audi""tor"; GRANT SELECT ON schema_migrations TO ordinary`)
	if err := db.Open(t).Close(); err != nil {
		t.Fatal(err)
	}
	d := granted{db}.Open(t)
	must(t, d, createTxn("a", "1"))
	must(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: createTxn("a", "").Ops[0].Key, Expect: 1, Value: []byte("2")}}})
	if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: 2, Past: map[string]int64{"*": 0}}); err != nil {
		t.Error(err)
	}
	if p, err := d.Pack(t.Context(), sqlstore.Cursor{}, 10); err != nil || p.Rows != 1 {
		t.Errorf("packing gives %+v, %v", p, err)
	}
	if _, err := d.Stats(t.Context()); err != nil {
		t.Error(err)
	}
	conn, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var rights string
	if err := conn.QueryRow(t.Context(), `SELECT string_agg(relname || '=' || privilege_type, ' ' ORDER BY relname, privilege_type) FROM pg_class, aclexplode(relacl) a WHERE pg_get_userbyid(a.grantee) = 'Audi"tor'`).Scan(&rights); err != nil {
		t.Fatal(err)
	}
	if want := "kv=SELECT kv_alive=SELECT kv_lead=SELECT kv_marks=SELECT kv_meta=SELECT kv_packed=SELECT schema_migrations=SELECT"; rights != want {
		t.Errorf("a role that may read kv has %s, want %s", rights, want)
	}
}
