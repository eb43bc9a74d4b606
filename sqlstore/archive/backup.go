package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/lockfile"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// Options of a backup.
type Options struct {
	// History includes the writes that are still kept, so that watches can go on
	// after a restore. While a server runs it reaches back half as far as
	// that keeps it: the rest may be compacted while it is read.
	History  bool
	Progress func(rows, total int64) // called now and then, with about how many there are; may be nil
}

const (
	page = 1000
	// tries bounds how often a backup with history restarts because a compaction overtook it: less
	// is kept afterwards, so that the next try has less to read.
	tries = 3
)

// BackupFile writes a backup to path. Until it is complete its name is path with ".partial" appended, which a
// crash may leave behind. Errors: those of Backup, CompactedError only after several attempts.
func BackupFile(ctx context.Context, d sqlstore.Driver, path string, opt Options) (h Header, t Trailer, err error) {
	for range tries {
		err = WriteFile(path, func(f io.Writer) (err error) {
			h, t, err = Backup(ctx, d, f, opt)
			return err
		})
		var compacted *sqlstore.CompactedError
		if !opt.History || !errors.As(err, &compacted) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("backing up to %s: %w", path, err)
	}
	return h, t, err
}

// WriteFile makes a file that appears whole or not at all, for its owner alone. It fails while another process makes it.
func WriteFile(path string, write func(io.Writer) error) error {
	partial := path + ".partial"
	f, err := takePartial(partial)
	if err != nil {
		return err
	}
	defer f.Close()
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err == nil && runtime.GOOS == "windows" { // which does not rename an open file
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		if runtime.GOOS == "windows" { // nor does it remove one
			_ = f.Close() // nothing of it is used
		}
		return errors.Join(err, os.Remove(partial)) // while it is locked: afterwards it may be another process's
	}
	return SyncFolder(filepath.Dir(path))
}

// takePartial creates a file that no other process writes, or takes one that a crash left behind.
func takePartial(path string) (*os.File, error) {
	f, err := lockfile.Take(path)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("%s: another process writes it", path)
	}
	opened, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Stat(path); err == nil && !os.SameFile(opened, now) {
			err = fmt.Errorf("%s: another process has just written it", path)
		}
	}
	if err == nil && opened.Size() > 0 { // a pipe in its place cannot be cut
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// SyncFolder makes a rename in a folder durable.
func SyncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Backup writes everything as of one revision. Errors: those of the driver; CompactedError if it took longer
// than history is kept.
func Backup(ctx context.Context, d sqlstore.Driver, out io.Writer, opt Options) (Header, Trailer, error) {
	window, release, err := upkeep.Hold(ctx, d)
	if err != nil {
		return Header{}, Trailer{}, err
	}
	defer release()
	stats, err := d.Stats(ctx)
	if err != nil {
		return Header{}, Trailer{}, err
	}
	h := Header{
		Format: formatName, Version: formatVersion, Driver: stats.Driver, ClusterID: stats.ClusterID,
		Revision: window.Head, Floor: window.Head, Taken: time.Now().UTC().Truncate(time.Second),
	}
	if opt.History {
		h.Floor = window.Floor
		f, err := d.Floors(ctx)
		if err != nil {
			return h, Trailer{}, err
		}
		if f.Past != nil {
			h.Past = sqlstore.Floors{Log: h.Floor, Past: f.Past, Skipped: f.Skipped}.Text()
		}
	}
	about := stats.LiveRows
	if opt.History {
		about += stats.HistoryRows + stats.PackedRows
	}
	zip := gzip.NewWriter(out)
	w := &writer{out: zip, sum: newSum(), about: about, progress: opt.Progress}
	if err := w.all(ctx, d, h); err != nil {
		return h, Trailer{}, err
	}
	if err := h.held(ctx, d); err != nil {
		return h, Trailer{}, err
	}
	if err := zip.Close(); err != nil {
		return h, Trailer{}, err
	}
	return h, Trailer{Rows: w.rows, SHA256: w.total}, nil
}

// held returns CompactedError if the database has deleted history that the header promises, and that may not have been read before.
func (h *Header) held(ctx context.Context, d sqlstore.Driver) error {
	if h.Past == "" {
		return nil
	}
	promised, err := sqlstore.ParseFloors(h.Past, h.Floor)
	if err != nil {
		return err
	}
	now, err := d.Floors(ctx)
	if err != nil {
		return err
	}
	for _, past := range []map[string]int64{promised.Past, now.Past} {
		for name := range past {
			if was, is := floorOf(promised, name), floorOf(now, name); is > was {
				return &sqlstore.CompactedError{Revision: was, Floor: is}
			}
		}
	}
	return nil
}

// floorOf returns the floor of the snapshots of a name in Floors.Past; for "" that of the rest, and not of all resources.
func floorOf(f sqlstore.Floors, name string) int64 {
	if floor, ok := f.Past[name]; ok {
		return floor
	}
	return f.Of(name)
}

type writer struct {
	out      io.Writer
	sum      hash.Hash
	rows     int64
	total    string
	about    int64 // rows that there are
	progress func(rows, total int64)
}

func (w *writer) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.write(append(text, '\n'))
}

func (w *writer) write(text []byte) error {
	w.sum.Write(text)
	_, err := w.out.Write(text)
	return err
}

// all writes the live rows at the floor, and the later ones up to the head.
func (w *writer) all(ctx context.Context, d sqlstore.Driver, h Header) error {
	if err := w.line(h); err != nil {
		return err
	}
	err := upkeep.Snapshot(ctx, d, h.Floor, func(rows []sqlstore.Row) error { return w.page(rows, h) })
	if err != nil {
		return err
	}
	if err := w.older(ctx, d, h); err != nil {
		return err
	}
	for after := h.Floor; after < h.Revision; {
		log, err := d.Changes(ctx, after, int(min(page, h.Revision-after)), false)
		if err != nil {
			return err
		}
		rows := make([]sqlstore.Row, len(log))
		for i := range log {
			rows[i] = log[i].Row
		}
		if err := w.page(rows, h); err != nil {
			return err
		}
		after += int64(len(log))
	}
	w.total = sum(w.sum)
	return w.line(Trailer{Rows: w.rows, SHA256: w.total})
}

// older writes the history before the floor.
func (w *writer) older(ctx context.Context, d sqlstore.Driver, h Header) error {
	if h.Past == "" {
		return nil
	}
	for after := (sqlstore.Cursor{}); ; {
		rows, err := d.Older(ctx, h.Floor, after, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := w.page(rows, h); err != nil {
			return err
		}
		after = sqlstore.Cursor{Key: rows[len(rows)-1].Key, Revision: rows[len(rows)-1].Revision}
	}
}

func (w *writer) page(rows []sqlstore.Row, h Header) error {
	for _, row := range rows {
		if row.Superseded > h.Revision {
			row.Superseded = 0 // it ended after the moment that the backup is of
		}
		text, err := encode(row)
		if err != nil {
			return err
		}
		if err := w.write(text); err != nil {
			return err
		}
		w.rows++
	}
	if w.progress != nil {
		w.progress(w.rows, w.about)
	}
	return nil
}
