package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MissingError: there are the keys of a cluster, and not its database file.
type MissingError struct {
	Path string
	Used bool // the file was in use with this folder; otherwise only the keys were
}

func (e *MissingError) Error() string {
	was := "the data directory holds the keys of a cluster, and no database of it: %s"
	if e.Used {
		was = "the database %s was used with this data directory and"
	}
	return fmt.Sprintf(was+" is not there, or empty: put it back (with its -wal file), "+
		"or fill a new one with `rowlock store restore`, or start without any object with --init", e.Path)
}

// begin records that a new folder has had no database so far. A folder that has a signing key but no such record comes
// from another place, or from an older release.
func (d *Dir) begin() error {
	if _, err := os.Stat(d.ServiceAccount); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(d.usedPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeFile(d.usedPath(), nil)
}

// Expect refuses to start with a new database if a database file was in use with this folder, or with keys
// that are elsewhere. Errors: MissingError.
func (d *Dir) Expect(file string) error {
	name, err := d.nameOf(file)
	if err != nil {
		return err
	}
	known, err := d.databases()
	if err != nil {
		return err
	}
	if known != nil && !known[name] {
		return nil
	}
	// Opening a missing database leaves an empty file.
	if info, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return &MissingError{Path: file, Used: known[name]}
	}
	return nil // opening it returns a better error
}

// Used remembers a database file that is in use.
func (d *Dir) Used(file string) error {
	name, err := d.nameOf(file)
	if err != nil {
		return err
	}
	known, err := d.databases()
	if err != nil || known[name] {
		return err
	}
	var text strings.Builder
	for path := range known {
		text.WriteString(path + "\n")
	}
	text.WriteString(name + "\n")
	return writeFile(d.usedPath(), []byte(text.String()))
}

// nameOf returns how a file is remembered: one in the folder moves with it.
func (d *Dir) nameOf(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if inside, err := filepath.Rel(d.Path, abs); err == nil && filepath.IsLocal(inside) {
		return inside, nil
	}
	return abs, nil
}

func (d *Dir) usedPath() string { return filepath.Join(d.Path, "databases") }

// databases returns the files that were in use; nil if nothing is remembered, not even that
// there were none.
func (d *Dir) databases() (map[string]bool, error) {
	text, err := os.ReadFile(d.usedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	return known, nil
}
