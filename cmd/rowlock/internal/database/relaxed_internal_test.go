package database

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRelaxedDurabilityNames: a name that cannot be relaxed is refused with the flag's and no other, whatever the database.
func TestRelaxedDurabilityNames(t *testing.T) {
	place := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	for _, c := range []struct {
		store, name, want string
	}{
		{place, "pods", `--relaxed-durability: "pods" is neither events nor leases`},
		{"postgres://localhost/a", "secrets", `--relaxed-durability: "secrets" is neither events nor leases`},
		{"memory:", "leases", "--relaxed-durability: a database in memory has no disk"},
	} {
		_, err := OpenWith(t.Context(), c.store, Migrate, DriverFlags{relaxed: []string{c.name}})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s with %s gave %v", c.store, c.name, err)
		}
	}
	d, err := OpenWith(t.Context(), place, Migrate, DriverFlags{relaxed: []string{"leases", "events"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
