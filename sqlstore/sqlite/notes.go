package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// Note implements sqlstore.Driver.
func (d *Driver) Note(ctx context.Context, name string) (note string, err error) {
	err = d.reader(ctx, func(c *conn) error {
		note, err = readNote(c, name)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the note %s: %w", name, err)
	}
	return note, nil
}

func readNote(c *conn, name string) (string, error) {
	var v [1]driver.Value
	_, err := c.one(v[:], qNote, name)
	return text(v[0]), err
}

// SetNote implements sqlstore.Driver.
func (d *Driver) SetNote(ctx context.Context, name, was, is string) (ok bool, err error) {
	_, err = d.writing(ctx, func(w *conn) error {
		now, err := readNote(w, name)
		if ok = err == nil && now == was; !ok {
			return err
		}
		return w.exec(qSetNote, name, is)
	})
	if err != nil {
		return false, fmt.Errorf("writing the note %s: %w", name, err)
	}
	return ok, nil
}
