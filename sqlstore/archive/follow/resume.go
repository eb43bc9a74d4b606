package follow

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// resumed describes the end of the newest segment of a folder.
type resumed struct {
	header segmentHeader
	next   int64
	sum    sum
	ended  bool
	size   int64
	last   *sqlstore.Change // the newest row in it, if it has any
	cut    int64            // bytes of a frame that was not whole
	end    int64            // where the last write to it began, as far as that is whole
	at     int64            // time of the last frame, or of the beginning
}

// resume makes the writer continue at the end of the folder. It cuts off the incomplete frame of a killed
// writer, and writes the last whole one again. Errors: ErrDamaged for any other defect: the writer then has to begin a new run.
func (w *writer) resume(path string) (r resumed, err error) {
	r, err = readEnd(path)
	if err != nil {
		return r, err
	}
	if r.size == 0 { // killed before anything was whole
		if err := os.Remove(path); err != nil {
			return r, err
		}
		return r, archive.SyncFolder(w.dir)
	}
	if err := writeAgain(path, r.end, r.size); err != nil {
		return r, err
	}
	w.run, w.next, w.at, w.sum, w.fresh = r.header.Run, r.next, r.at, r.sum, false
	w.path, w.first, w.before, w.begins = path, r.header.First, sum{}, r.header.Previous == ""
	if _, err := hex.Decode(w.before[:], []byte(r.header.Previous)); err != nil {
		return r, err
	}
	if r.ended && w.next == w.first {
		return r, w.discard()
	}
	if r.ended {
		return r, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return r, err
	}
	if r.cut > 0 {
		if err = f.Truncate(r.size); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		f.Close()
		return r, err
	}
	w.f, w.size, w.began = f, r.size, r.header.Began
	if age := time.Since(w.began); age < 0 || age > w.mostAge {
		w.began = time.Now() // clocks are set
	}
	return r, nil
}

// writeAgain writes a part of a segment again and syncs it. The sync after it was written may have failed: then only the
// system's memory may have the part, which the system counts as written.
func writeAgain(path string, from, to int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	part := make([]byte, to-from)
	if _, err = f.ReadAt(part, from); err == nil {
		_, err = f.WriteAt(part, from)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readEnd reads a segment up to its last whole frame.
func readEnd(path string) (r resumed, err error) {
	f, err := openFile(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	unpack, err := newUnpacker()
	if err != nil {
		return r, err
	}
	defer unpack.close()
	in, err := newSegmentReader(filepath.Base(path), f)
	if err == nil {
		r.at = in.header.Began.UnixMicro()
	}
	for frames := 0; err == nil; frames++ {
		r.header, r.next, r.sum, r.ended, r.size = in.header, in.next, in.sum, in.ended, in.offset
		var one frame
		if one, err = in.read(); err == nil {
			if r.at = one.at; frames > 0 { // the first frame is written with the head
				r.end = one.offset
			}
			err = unpack.rows(&one, func(c *sqlstore.Change) error {
				keep := *c
				keep.Value = append([]byte(nil), c.Value...)
				r.last = &keep
				return nil
			})
		}
	}
	r.cut = info.Size() - r.size
	switch {
	case errors.Is(err, io.EOF):
		return r, nil
	case errors.Is(err, errTorn), errors.Is(err, ErrDamaged):
		return r, tail(f, r.size, err)
	}
	return r, err
}

// tail decides whether the bytes after the last complete frame are the beginning of one that was being
// written when the process or the machine ended; then err is ignored.
func tail(f *os.File, from int64, err error) error {
	if _, e := f.Seek(from, io.SeekStart); e != nil {
		return e
	}
	const most = 2*longest + headSize
	rest, e := io.ReadAll(io.LimitReader(f, most+1))
	if e != nil {
		return e
	}
	if len(rest) > most {
		return err
	}
	if len(rest) > 0 {
		rest = rest[1:] // the frame itself may begin rightly
	}
	if frameIn(rest) {
		if errors.Is(err, ErrDamaged) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
