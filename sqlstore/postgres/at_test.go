package postgres_test

import (
	"testing"

	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// TestAt: a URL opens the database that it names, with its schema brought up to date.
func TestAt(t *testing.T) {
	d, err := postgres.At(newDatabase(t, postgres.Config{}).url)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if stats, err := d.Stats(t.Context()); err != nil || stats.Driver != "postgres" || stats.SchemaVersion == 0 {
		t.Errorf("%+v %v", stats, err)
	}
}
