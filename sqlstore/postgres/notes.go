package postgres

import (
	"context"
	"fmt"
)

// Note implements sqlstore.Driver.
func (d *Driver) Note(ctx context.Context, name string) (note string, err error) {
	ctx, done := d.call(ctx, d.boundsTime())
	defer done(&err)
	if err = d.pool.QueryRow(ctx, qNote, name).Scan(&note); err != nil {
		return "", fmt.Errorf("reading the note %s: %w", name, err)
	}
	return note, nil
}

// SetNote implements sqlstore.Driver.
func (d *Driver) SetNote(ctx context.Context, name, was, is string) (ok bool, err error) {
	ctx, done := d.call(ctx, d.cfg.StatementTimeout)
	defer done(&err)
	tag, err := d.pool.Exec(ctx, qSetNote, name, was, is)
	if err == nil && tag.RowsAffected() == 0 && was == "" {
		tag, err = d.pool.Exec(ctx, qNewNote, name, is)
	}
	if err != nil {
		return false, fmt.Errorf("writing the note %s: %w", name, err)
	}
	return tag.RowsAffected() > 0, nil
}
