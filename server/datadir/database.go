package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MissingError: a database file that was in use is not there any more.
type MissingError struct{ Path string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the database %s was used with this data directory and is not there: put it back (with its -wal file), "+
		"or fill a new one with `rowlock store restore`, or begin anew without any object by --init", e.Path)
}

// Expect refuses to begin anew in the place of a database file that was in use with
// this folder. Errors: MissingError.
func (d *Dir) Expect(file string) error {
	name, err := d.nameOf(file)
	if err != nil {
		return err
	}
	known, err := d.databases()
	if err != nil {
		return err
	}
	if !known[name] {
		return nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return &MissingError{file}
	}
	return nil // anything else opening it tells better
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

// nameOf is how a file is remembered: one in the folder moves with it.
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

func (d *Dir) databases() (map[string]bool, error) {
	text, err := os.ReadFile(d.usedPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	return known, nil
}
