package follow

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// ErrGone: the folder or the segment that is written to is not where it was.
var errReplaced = errors.New("is gone, or another than was opened")

// writer appends to the newest segment of a folder.
type writer struct {
	dir       string
	identity  segmentHeader // cluster and driver, for new segments
	mostBytes int64         // of a segment
	mostAge   time.Duration

	run   int
	next  int64 // revision that comes next
	at    int64 // time of the last frame
	sum   sum   // of all that was written in this run
	fresh bool  // the next segment begins the run

	f      *os.File // nil: the next frame begins a segment
	path   string
	size   int64
	began  time.Time
	first  int64 // revision that comes first in the segment
	before sum   // of all that was written before the segment
	begins bool  // the segment begins the run

	zip    *zstd.Encoder
	raw    []byte // rows of the frame that is filled
	head   frameHead
	newest time.Time // when its last row was written
	out    []byte
	packed []byte // rows of the frame, packed; reused
	synced func(bytes int)
}

func newWriter(dir string, mostBytes int64, mostAge time.Duration, synced func(bytes int)) (*writer, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
	return &writer{dir: dir, mostBytes: mostBytes, mostAge: mostAge, zip: zip, synced: synced}, err
}

// last returns the newest revision in the log.
func (w *writer) last() int64 { return w.next - 1 }

// begin starts a new run, whose first revision is the one after.
func (w *writer) begin(run int, after int64) {
	w.run, w.next, w.fresh, w.sum = run, after+1, true, sum{}
}

// add takes a change into the frame that is filled.
func (w *writer) add(c *sqlstore.Change) error {
	if want := w.next + int64(w.head.count); c.Revision != want {
		return fmt.Errorf("the database gave revision %d where %d belongs", c.Revision, want)
	}
	if c.Damaged != nil {
		fixed := *c
		fixed.Row = archive.Restorable(c.Row)
		c = &fixed
	}
	if at := c.WrittenAt.UnixMicro(); w.head.count == 0 || at < w.head.earliest {
		w.head.earliest = at
	}
	w.raw = appendRow(w.raw, c)
	w.head.count++
	w.newest = c.WrittenAt
	return nil
}

// by returns the time up to which the log is complete with the frame that is filled, at a time, if later rows are not in it.
func (w *writer) by(at time.Time) time.Time {
	if w.newest.Before(at) {
		return w.newest
	}
	return at
}

// waiting returns the bytes that the frame has so far.
func (w *writer) waiting() int { return len(w.raw) }

// drop forgets the frame that is filled.
func (w *writer) drop() { w.raw, w.head = w.raw[:0], frameHead{} }

// flush writes the frame and waits for the disk. at is the time up to which the log is complete with it. A
// frame without rows states only that.
func (w *writer) flush(at time.Time) error {
	h := w.head
	h.kind, h.first, h.at, h.size = kindRows, w.next, at.UnixMicro(), uint32(len(w.raw))
	var packed []byte
	if h.count == 0 {
		h.kind, h.earliest = kindSeen, h.at
	} else {
		w.packed = w.zip.EncodeAll(w.raw, w.packed[:0])
		packed = w.packed
	}
	if len(w.raw) > longest || len(packed) > longest {
		return fmt.Errorf("the commits from revision %d on have %d bytes, more than a frame can hold", h.first, len(w.raw))
	}
	if err := w.append(h, packed); err != nil {
		return err
	}
	w.drop()
	if cap(w.raw) > 8<<20 {
		w.raw, w.packed = nil, nil
	}
	return nil
}

// append writes a frame at the end of the segment, or of a new one.
func (w *writer) append(h frameHead, packed []byte) error {
	if w.f != nil && h.kind != kindEnd && (w.size >= w.mostBytes || time.Since(w.began) >= w.mostAge || isPause(micros(h.at).Sub(micros(w.at)))) {
		finish := w.end
		if w.next == w.first {
			finish = w.discard
		}
		if err := finish(); err != nil {
			return err
		}
	}
	w.out = w.out[:0]
	last := w.sum
	if w.f == nil {
		first, err := w.create(&last, micros(h.at))
		if err != nil {
			return err
		}
		w.out = append(w.out, first...)
	}
	if err := w.kept(); err != nil {
		return err
	}
	h.packed = uint32(len(packed))
	head := h.encode()
	last = last.then(head, packed)
	w.out = append(append(append(w.out, head...), packed...), last[:]...)
	if _, err := w.f.Write(w.out); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	w.size += int64(len(w.out))
	w.sum, w.next, w.at, w.fresh = last, h.last()+1, h.at, false
	w.synced(len(w.out))
	if cap(w.out) > 8<<20 {
		w.out = nil
	}
	return nil
}

// create makes the next segment, and returns the bytes before the first frame. Until that frame is written,
// the file contains nothing that a reader needs.
func (w *writer) create(chain *sum, at time.Time) ([]byte, error) {
	h := w.identity
	h.Run, h.First, h.Began = w.run, w.next, at.Truncate(time.Millisecond)
	if !w.fresh {
		h.Previous = hex.EncodeToString(w.sum[:])
	}
	text, first, err := h.encode()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(w.dir, fileName(logPrefix, logSuffix, w.run, w.next))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := archive.SyncFolder(w.dir); err != nil {
		f.Close()
		return nil, errors.Join(err, os.Remove(path))
	}
	w.f, w.path, w.size, w.began = f, path, 0, time.Now()
	w.first, w.before, w.begins = w.next, w.sum, w.fresh
	*chain = first
	return text, nil
}

// end marks the segment as complete, and closes it. The log is complete up to the time of the last frame: commits since then may be
// missing.
func (w *writer) end() error {
	if w.f == nil {
		return nil
	}
	if err := w.append(frameHead{kind: kindEnd, first: w.next, at: w.at, earliest: w.at}, nil); err != nil {
		return err
	}
	return w.close()
}

// discard removes a segment without commits, which states only that there were none: the next one has its name.
func (w *writer) discard() error {
	err := errors.Join(w.close(), os.Remove(w.path))
	w.sum, w.fresh = w.before, w.begins
	return errors.Join(err, archive.SyncFolder(w.dir))
}

// close leaves the segment as it is, for another writer to go on with.
func (w *writer) close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	return err
}

// kept returns an error unless the segment is still where it was opened: a write to a file
// without a name would be gone with the process.
func (w *writer) kept() error {
	opened, err := w.f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(w.path)
	if err != nil || !os.SameFile(opened, now) {
		return fmt.Errorf("%s %w", w.path, errReplaced)
	}
	return nil
}
