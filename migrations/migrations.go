// Package migrations holds the schema of each database as numbered SQL files
// and brings a database to the newest of them.
//
// Files are forward only and never edited once released. Each must be safe to
// run again (IF NOT EXISTS, ON CONFLICT DO NOTHING): a process that dies between
// a file's commit and its bookkeeping makes the next one run it again. A change
// that older binaries cannot live with raises schema_compatible in kv_meta.
package migrations

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Newest returns the highest number among a database's files; dir is "sqlite" or "postgres".
func Newest(dir string) (uint, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return 0, fmt.Errorf("migrations of %s: %w", dir, err)
	}
	var newest uint
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("migrations of %s: file %s has no number", dir, e.Name())
		}
		newest = max(newest, uint(n))
	}
	return newest, nil
}

// Up runs the missing migrations. The caller holds a lock that keeps other processes
// from doing the same, and closes db.
func Up(dir string, db database.Driver) error {
	src, err := iofs.New(files, dir)
	if err != nil {
		return fmt.Errorf("migrations of %s: %w", dir, err)
	}
	defer src.Close()
	m, err := migrate.NewWithInstance("iofs", src, dir, db)
	if err != nil {
		return fmt.Errorf("migrations of %s: %w", dir, err)
	}
	version, dirty, err := m.Version()
	if err != nil && !errors.Is(err, migrate.ErrNilVersion) {
		return fmt.Errorf("migrations of %s: reading the version: %w", dir, err)
	}
	if dirty { // cut short before: the files may be run again
		before := cmp.Or(int(version)-1, database.NilVersion)
		if err := m.Force(before); err != nil {
			return fmt.Errorf("migrations of %s: resuming version %d: %w", dir, version, err)
		}
	}
	if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("migrations of %s: %w", dir, err)
	}
	return nil
}
