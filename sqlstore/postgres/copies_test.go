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
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// Keys and a table as who reads a dump in makes them.
const (
	keysAnew  = `CREATE TEMP TABLE k AS SELECT * FROM kv_meta; DELETE FROM kv_meta; INSERT INTO kv_meta SELECT * FROM k`
	tableBare = `ALTER TABLE kv RENAME TO was; CREATE TABLE kv (LIKE was INCLUDING ALL); INSERT INTO kv SELECT * FROM was; `
	tableAnew = tableBare + `DO $$ DECLARE d text; BEGIN FOR d IN SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'was'::regclass AND NOT tgisinternal LOOP` +
		` EXECUTE replace(d, '.was ', '.kv '); END LOOP; END $$; DROP TABLE was CASCADE`
)

func TestCopies(t *testing.T) {
	for name, cfg := range map[string]postgres.Config{"listening": {}, "polling": {Poll: true}} {
		t.Run(name, func(t *testing.T) {
			storetest.Copies(t, func(t testing.TB) storetest.Database { return newDatabase(t, cfg) }, map[string]storetest.Way{
				"all rows go":          storetest.ByExec(`TRUNCATE kv`),
				"keys are read in":     storetest.ByExec(keysAnew),
				"keys are damaged":     storetest.ByExec(`UPDATE kv_meta SET word = 'x' || word, number = pg_current_xact_id()::text::bigint WHERE key = 'copies'`),
				"it is another server": storetest.ByExec(`UPDATE kv_meta SET word = '1' || word, number = pg_current_xact_id()::text::bigint WHERE key = 'copies'`),
				"the table is anew":    storetest.ByExec(tableAnew),
				"from another schema":  storetest.ByExec(`SET search_path = pg_catalog; UPDATE public.kv SET value = '{}' WHERE name = 'x'`),
				"a part of a change":   storetest.ByExec(`BEGIN; UPDATE kv SET value = '{}' WHERE name = 'x'; UPDATE kv SET value = '{"n":1}' WHERE name = 'x'; COMMIT`),
			}, map[string]storetest.Way{
				"a change that is taken back": storetest.ByExec(`BEGIN; UPDATE kv SET value = '{}' WHERE name = 'x'; ROLLBACK`),
				"vacuum": func(t testing.TB, db storetest.Database) {
					for _, sql := range []string{`VACUUM (FULL, FREEZE) kv, kv_meta`, `VACUUM (FREEZE) kv, kv_meta`, `CLUSTER kv USING kv_pkey`, `REINDEX TABLE kv`} {
						db.Exec(t, sql)
					}
				},
				"a past row goes": func(t testing.TB, db storetest.Database) {
					storetest.ByExec(`INSERT INTO kv SELECT 0, resource, namespace, name, 0, 1, true, value, expires_at, written_at FROM kv WHERE name = 'x'`)(t, db)
					storetest.ByExec(`UPDATE kv SET value = '{}' WHERE revision = 0; DELETE FROM kv WHERE revision = 0`)(t, db)
				},
			})
		})
	}
}

// TestCopiesNeedTriggers: a table without the triggers, or with some of them switched off, has keys for nobody.
func TestCopiesNeedTriggers(t *testing.T) {
	for name, sql := range map[string]string{
		"the table is anew without them": tableBare,
		"one is gone":                    `DROP TRIGGER kv_removed_live ON kv`,
		"one is off":                     `ALTER TABLE kv DISABLE TRIGGER kv_changed_in_place`,
		"one is for replicas":            `ALTER TABLE kv ENABLE REPLICA TRIGGER kv_removed_all`,
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t, postgres.Config{})
			c := db.Open(t).(*postgres.Driver)
			known, err := c.Copies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			db.Exec(t, sql)
			if err := c.Vouch(t.Context(), known.Edition, "copy", [32]byte{}); !errors.Is(err, sqlstore.ErrEdited) {
				t.Errorf("vouching: %v", err)
			}
			if _, err := c.Copies(t.Context()); err == nil || !strings.Contains(err.Error(), "triggers") {
				t.Errorf("reading the keys: %v", err)
			}
		})
	}
}

// TestCopiesOfATemplate: a database that was copied as it lies on the disk has the rows that its keys vouch for. But in its place
// nobody vouches for what was read from the first one, which may have gone on.
func TestCopiesOfATemplate(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	d, err := postgres.Open(t.Context(), db.url, db.cfg)
	if err != nil {
		t.Fatal(err)
	}
	known, err := d.Copies(t.Context())
	if err == nil {
		err = d.Vouch(t.Context(), known.Edition, "copy", [32]byte{1})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	db.Ended(t)
	name := db.url[strings.LastIndexByte(db.url, '/')+1:]
	name, _, _ = strings.Cut(name, "?")
	other := newDatabase(t, postgres.Config{})
	other.Exec(t, `CREATE DATABASE `+name+`_copied TEMPLATE `+name)
	copied := database{strings.Replace(db.url, "/"+name, "/"+name+"_copied", 1), db.cfg}
	d = copied.Open(t).(*postgres.Driver)
	if err := d.Vouch(t.Context(), known.Edition, "late", [32]byte{2}); !errors.Is(err, sqlstore.ErrEdited) {
		t.Errorf("vouching for what was read from the first database: %v", err)
	}
	known, err = d.Copies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := known.Key("copy"); !ok {
		t.Error("the copied database does not vouch for the copy")
	}
	if err := d.Vouch(t.Context(), known.Edition, "its own", [32]byte{3}); err != nil {
		t.Errorf("vouching for what was read from the copied one: %v", err)
	}
}

// TestCopiesBesideAChange begins with the keys, and vouches, while somebody changes a row in place: what was read before
// the change was committed is vouched for by nobody, in whatever order and isolation.
func TestCopiesBesideAChange(t *testing.T) {
	for _, row := range []string{"without the row", "with the row", "with keys"} {
		for _, isolation := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprint(row, "/", isolation, "/late=", late), func(t *testing.T) {
					besideAChange(t, row, isolation, late)
				})
			}
		}
	}
}

func besideAChange(t *testing.T, row string, isolation pgx.TxIsoLevel, late bool) {
	ctx := t.Context()
	db := newDatabase(t, postgres.Config{LockTimeout: 200 * time.Millisecond})
	d := db.Open(t).(*postgres.Driver)
	create := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: "x"}, Value: []byte("{}")}
	if _, err := d.Apply(ctx, []sqlstore.Txn{{Ops: []sqlstore.Op{create}}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	switch row {
	case "without the row":
		db.Exec(t, `DELETE FROM kv_meta WHERE key = 'copies'`)
	case "with keys":
		if _, err := d.Copies(ctx); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(ctx, db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: isolation})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT count(*) FROM kv`); err != nil { // it has its snapshot
		t.Fatal(err)
	}
	change := func() error {
		_, err := tx.Exec(ctx, `UPDATE kv SET value = '{"n":1}' WHERE name = 'x'`)
		return err
	}
	if !late {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
	known, begun := d.Copies(ctx)
	if begun != nil && !errors.Is(begun, sqlstore.ErrBusy) {
		t.Fatal(begun)
	}
	vouched := begun
	if begun == nil && late {
		if vouched = d.Vouch(ctx, known.Edition, "copy", [32]byte{}); vouched != nil {
			t.Fatal(vouched)
		}
	}
	if late {
		err = change()
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return // the change came to nothing: it saw a database without the keys
	}
	if begun == nil {
		if err := d.Vouch(ctx, known.Edition, "late", [32]byte{}); !errors.Is(err, sqlstore.ErrEdited) {
			t.Errorf("vouching for what was read before the change was committed: %v", err)
		}
	}
	known, err = d.Copies(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := known.Key("copy"); ok {
		t.Error("a copy of before the change is vouched for")
	}
}
