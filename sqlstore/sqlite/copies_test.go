package sqlite_test

import (
	"testing"

	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestCopies(t *testing.T) {
	storetest.Copies(t, fresh, map[string]storetest.Way{
		"a dump is read in": storetest.ByExec(`PRAGMA user_version = 0`),
		"keys are damaged":  storetest.ByExec(`UPDATE kv_meta SET value = 'x' || value WHERE key = 'copies'`),
	}, nil)
}
