package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestCacheFiles(t *testing.T) {
	for name, cfg := range map[string]postgres.Config{"listening": {}, "polling": {Poll: true}} {
		t.Run(name, func(t *testing.T) {
			storetest.CacheFiles(t, func(t testing.TB) storetest.Database { return newDatabase(t, cfg) }, map[string]storetest.Event{
				"keys are damaged": storetest.ByExec(`UPDATE kv_meta SET word = 'x' || word WHERE key = 'cache_files'`),
			}, map[string]storetest.Event{
				"vacuum": func(t testing.TB, db storetest.Database) {
					for _, sql := range []string{`VACUUM (FULL, FREEZE) kv, kv_meta`, `VACUUM (FREEZE) kv, kv_meta`, `CLUSTER kv USING kv_pkey`, `REINDEX TABLE kv`} {
						db.Exec(t, sql)
					}
				},
			})
		})
	}
}

// TestCacheFilesOfATemplate: a database that was copied as it lies on the disk has the rows that it attests to. But it does not
// attest to what a server read from the first one, which may have gone on.
func TestCacheFilesOfATemplate(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	d, err := postgres.Open(t.Context(), db.url, db.cfg)
	if err != nil {
		t.Fatal(err)
	}
	known, err := d.CacheFiles(t.Context())
	if err == nil {
		err = d.Attest(t.Context(), known.Epoch, "file", [32]byte{1})
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
	if err := d.Attest(t.Context(), known.Epoch, "late", [32]byte{2}); !errors.Is(err, sqlstore.ErrEpochChanged) {
		t.Errorf("attesting to what was read from the first database: %v", err)
	}
	known, err = d.CacheFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := known.Key("file"); !ok {
		t.Error("the copied database does not attest to the file")
	}
	if err := d.Attest(t.Context(), known.Epoch, "its own", [32]byte{3}); err != nil {
		t.Errorf("attesting to what was read from the copied one: %v", err)
	}
}
