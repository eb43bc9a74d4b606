package sqlstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

func TestSchemaLacks(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		schema     sqlstore.Schema
		compatible int64
		read       error
		frozen     bool
		lacks      bool
		err        string
	}{
		{schema: sqlstore.Schema{Found: 4, Known: 4}},
		{schema: sqlstore.Schema{Found: 4, Known: 4}, frozen: true},
		{schema: sqlstore.Schema{Known: 4}, lacks: true},
		{schema: sqlstore.Schema{Found: 3, Known: 4}, lacks: true},
		{schema: sqlstore.Schema{Found: 4, Known: 4, Dirty: true}, lacks: true},
		{schema: sqlstore.Schema{Found: 3, Known: 4}, frozen: true, err: "must be migrated first"},
		{schema: sqlstore.Schema{Found: 5, Known: 4}, compatible: 4},
		{schema: sqlstore.Schema{Found: 5, Known: 4, Dirty: true}, compatible: 1, frozen: true},
		{schema: sqlstore.Schema{Found: 5, Known: 4}, compatible: 5, err: "only versions that know migration 5 can read"},
		{schema: sqlstore.Schema{Found: 5, Known: 4}, read: broken, err: "broken"},
	} {
		lacks, err := tc.schema.Lacks(func() (int64, error) { return tc.compatible, tc.read }, tc.frozen)
		if lacks != tc.lacks || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%+v: %v, %v", tc, lacks, err)
		}
	}
}
