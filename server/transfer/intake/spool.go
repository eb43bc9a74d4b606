package intake

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// The suffixes of the two files of a spool: the rows, in the form of a backup and as they will be stored,
// encrypted or not; and the results, which are written last.
const (
	rowsEnd  = ".rows"
	foundEnd = ".json"
)

// Spooled is everything of a source, read and checked.
type Spooled struct {
	Path           string          `json:"-"`              // without the suffixes; "" without a spool
	Reused         bool            `json:"-"`              // an earlier run made it
	Mark           string          `json:"mark"`           // of the source and the options
	SourceRevision int64           `json:"sourceRevision"` // the newest of the source
	Head           int64           `json:"head"`           // from which the new log goes on
	Repeated       []int64         `json:"repeated"`       // revisions of more than one object, rising
	Rows           int64           `json:"rows"`
	SHA256         string          `json:"sha256"`
	Report         transfer.Report `json:"report"`
}

// spool is a file that is being written.
type spool struct {
	path string
	file *os.File
	buf  *bufio.Writer
	w    *archive.Writer
}

// createSpool begins a spool in place of an existing one. It holds secrets: only its owner may read it.
func createSpool(path string, revision int64) (*spool, error) {
	s := &spool{path: path}
	err := removeSpool(path)
	if err == nil {
		s.file, err = os.OpenFile(path+rowsEnd, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("the file between: %w", err)
	}
	s.buf = bufio.NewWriterSize(s.file, 1<<20)
	s.w, err = archive.NewWriter(s.buf, archive.Header{Driver: "import", Revision: revision, Floor: revision, Taken: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return nil, errors.Join(err, s.discard())
	}
	return s, nil
}

// finish writes the results, after which the spool may be used again.
func (s *spool) finish(found *Spooled) error {
	t, err := s.w.Close()
	if err == nil {
		err = s.buf.Flush()
	}
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = s.file.Close()
	}
	if err != nil {
		return fmt.Errorf("the file between: %w", err)
	}
	found.Rows, found.SHA256 = t.Rows, t.SHA256
	return archive.WriteFile(s.path+foundEnd, func(w io.Writer) error { return json.NewEncoder(w).Encode(found) })
}

// discard takes the spool away.
func (s *spool) discard() error {
	err := s.file.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, removeSpool(s.path))
}

// removeSpool removes the files of a spool, first the one that marks it as finished.
func removeSpool(path string) error {
	for _, end := range []string{foundEnd, rowsEnd} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Remove removes the spool, once it is of no more use.
func (s *Spooled) Remove() error {
	if s.Path == "" {
		return nil
	}
	return removeSpool(s.Path)
}

// mark identifies all that decides the content of the spool.
func (j *Job) mark() string {
	h := sha256.New()
	fmt.Fprintf(h, "1\n%q\n%d\n%q\n%v %v\n%q", j.Source.Describe(), j.Source.Revision(), j.Options.Prefix, j.Options.Events, j.SkipUndecodable, j.Mark)
	return hex.EncodeToString(h.Sum(nil))
}

// Finished finds the spool of an earlier run of the same job that came to its end, if it is
// whole; nil where there is none.
func (j *Job) Finished() *Spooled {
	if j.Spool == "" {
		return nil
	}
	text, err := os.ReadFile(j.Spool + foundEnd)
	if err != nil {
		return nil
	}
	s := &Spooled{}
	if json.Unmarshal(text, s) != nil || s.Mark != j.mark() {
		return nil
	}
	f, err := os.Open(j.Spool + rowsEnd)
	if err != nil {
		return nil
	}
	defer f.Close()
	if _, t, err := archive.Check(f); err != nil || t.Rows != s.Rows || t.SHA256 != s.SHA256 {
		return nil
	}
	s.Path, s.Reused = j.Spool, true
	return s
}
