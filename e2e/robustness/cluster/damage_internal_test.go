//go:build unix

package cluster

import (
	"testing"

	"github.com/rowlock/rowlock/migrations"
)

// TestUndo: the newest migration of each database can be taken back.
func TestUndo(t *testing.T) {
	t.Parallel()
	for store := range undo {
		newest, err := migrations.Newest(store)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := undo[store][newest]; !ok {
			t.Errorf("Unmigrate does not know how to take back migration %d of %s", newest, store)
		}
	}
}
