package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// qShape lists the schema of a database.
const qShape = `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
SELECT format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) AS line FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT viewname || definition FROM pg_views WHERE schemaname = 'public'
UNION ALL SELECT relname || ' ' || reloptions::text FROM pg_class WHERE relname LIKE 'kv%' AND reloptions IS NOT NULL
UNION ALL SELECT proname || prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT version::text FROM schema_migrations) l`

// TestEras opens databases of earlier builds, beginning with the first one that served.
func TestEras(t *testing.T) {
	var want string
	today := newDatabase(t, postgres.Config{})
	today.Open(t)
	today.Query(t, qShape, &want)
	for _, era := range []struct {
		name string
		rows int
		head int64
	}{{"first", 19, 35}, {"many9", 254, 287}} {
		t.Run(era.name, func(t *testing.T) {
			var got string
			db := newDatabase(t, postgres.Config{})
			db.Exec(t, string(storetest.EarlierBuildFile(t, "../../e2e/testdata/eras/"+era.name+".sql.gz")))
			storetest.EarlierBuild(t, db.Open(t), era.rows, era.head)
			db.Query(t, qShape, &got)
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the schema differs from that of a new database (-new +migrated):\n%s", diff)
			}
		})
	}
}

// TestMigrationOutlastsTimeouts: a statement_timeout that an administrator has set for the database does not end a migration, which
// takes long on a large table.
func TestMigrationOutlastsTimeouts(t *testing.T) {
	ctx := t.Context()
	db := migratedDatabase(t, postgres.Config{})
	db.Exec(t, `DROP INDEX kv_past; UPDATE schema_migrations SET version = 11`)
	db.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 1000', current_database()); END $$`)
	holder, err := pgx.Connect(ctx, db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(ctx, `BEGIN; LOCK TABLE kv IN ROW EXCLUSIVE MODE`); err != nil { // in the way of an index
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		d, err := postgres.Open(ctx, db.url, db.cfg)
		if err == nil {
			err = d.Close()
		}
		ended <- err
	}()
	for waits := false; !waits && len(ended) == 0; time.Sleep(10 * time.Millisecond) {
		db.Query(t, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '1500ms')`, &waits)
	}
	if err := holder.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var indexed bool
	if db.Query(t, `SELECT to_regclass('kv_past') IS NOT NULL`, &indexed); !indexed {
		t.Error("the migration has not made its index")
	}
}

// TestMigratesBesideWriters: servers of the builds before and after a migration use a database at the same
// time.
func TestMigratesBesideWriters(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	storetest.Migrates(t, db,
		func() { db.Exec(t, `DROP INDEX kv_past; UPDATE schema_migrations SET version = 11`) },
		func() {
			db.Exec(t, `CREATE TABLE kv_later (n bigint); ALTER TABLE kv ADD COLUMN later bigint; UPDATE schema_migrations SET version = 99`)
		})
}
