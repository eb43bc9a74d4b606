package follow

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/rowlock/rowlock/sqlstore/archive"
)

// Base is a backup of everything at one revision.
type Base struct {
	File     string    `json:"file"`
	Run      int       `json:"run"`
	Revision int64     `json:"revision"`
	Taken    time.Time `json:"taken"`
	Bytes    int64     `json:"bytes"`
	Cluster  string    `json:"clusterID"`
	Problem  string    `json:"problem,omitempty"`
}

// Segment is a part of the log.
type Segment struct {
	File    string    `json:"file"`
	Run     int       `json:"run"`
	First   int64     `json:"first"`
	Last    int64     `json:"last"` // First-1: it has no commits
	Began   time.Time `json:"began"`
	Until   time.Time `json:"until"` // everything that was committed by then is in it, or before
	Bytes   int64     `json:"bytes"`
	Open    bool      `json:"open"` // it may be written to
	Torn    int64     `json:"torn,omitempty"`
	Problem string    `json:"problem,omitempty"`

	header segmentHeader
	last   sum
}

// Run is a row of revisions without a gap.
type Run struct {
	Number   int       `json:"run"`
	First    int64     `json:"first"` // that can be restored, with its oldest base; 0: none
	Last     int64     `json:"last"`
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Bases    []Base    `json:"bases"`
	Segments []Segment `json:"segments"`
}

// Listing is the content of a folder, oldest first.
type Listing struct {
	Dir      string   `json:"dir"`
	Cluster  string   `json:"clusterID"`
	Runs     []*Run   `json:"runs"`
	Problems []string `json:"problems"`
	Bytes    int64    `json:"bytes"`
}

// List reads a folder: of each segment the beginning and the end, of the newest one everything. Defects of
// files are among the Problems; the error is one of reading the folder.
func List(dir string) (*Listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Listing{Dir: dir, Problems: []string{}, Runs: []*Run{}}
	runs := make(map[int]*Run)
	of := func(n int) *Run {
		if runs[n] == nil {
			runs[n] = &Run{Number: n, Bases: []Base{}, Segments: []Segment{}}
			l.Runs = append(l.Runs, runs[n])
		}
		return runs[n]
	}
	for _, e := range entries {
		if run, revision, ok := parseName(e.Name(), basePrefix, baseSuffix); ok {
			of(run).Bases = append(of(run).Bases, readBase(dir, e.Name(), run, revision))
		}
		if run, first, ok := parseName(e.Name(), logPrefix, logSuffix); ok {
			of(run).Segments = append(of(run).Segments, Segment{File: e.Name(), Run: run, First: first})
		}
	}
	slices.SortFunc(l.Runs, func(a, b *Run) int { return cmp.Compare(a.Number, b.Number) })
	for i, r := range l.Runs {
		l.complete(r, i == len(l.Runs)-1)
	}
	return l, nil
}

// complete reads the segments of a run, and holds them together.
func (l *Listing) complete(r *Run, newest bool) {
	for i := range r.Segments {
		s := &r.Segments[i]
		s.Open = newest && i == len(r.Segments)-1
		s.read(filepath.Join(l.Dir, s.File), i == len(r.Segments)-1)
		if i > 0 && s.Problem == "" {
			s.Problem = s.misfit(&r.Segments[i-1])
		}
		if s.Problem != "" {
			l.Problems = append(l.Problems, s.Problem)
		}
		l.Bytes += s.Bytes
		if s.header.ClusterID != "" {
			l.Cluster = s.header.ClusterID
		}
		r.Last, r.Until = s.Last, s.Until
	}
	for _, b := range r.Bases {
		if b.Problem != "" {
			l.Problems = append(l.Problems, b.Problem)
			continue
		}
		l.Bytes += b.Bytes
		l.Cluster = cmp.Or(l.Cluster, b.Cluster)
		if r.From.IsZero() {
			r.First, r.From = b.Revision, b.Taken
		}
		if b.Revision > r.Last {
			r.Last = b.Revision
		}
		if b.Taken.After(r.Until) {
			r.Until = b.Taken
		}
	}
}

// misfit returns why a segment does not go on where the one before it ends; empty: it does.
func (s *Segment) misfit(before *Segment) string {
	switch {
	case before.Problem != "":
		return ""
	case s.First > before.Last+1:
		return fmt.Sprintf("revisions %d to %d are missing: %s ends before them, %s begins after them", before.Last+1, s.First-1, before.File, s.File)
	case s.First <= before.Last || !s.header.follows(before.last):
		return fmt.Sprintf("%s does not go on where %s ends", s.File, before.File)
	}
	return ""
}

func readBase(dir, name string, run int, revision int64) Base {
	b := Base{File: name, Run: run, Revision: revision}
	fail := func(err error) Base {
		b.Problem = fmt.Sprintf("%s: %v", name, err)
		return b
	}
	f, err := openFile(filepath.Join(dir, name))
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		b.Bytes = info.Size()
	}
	zip, err := gzip.NewReader(f)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	line, err := bufio.NewReaderSize(zip, longHeader).ReadSlice('\n')
	var h archive.Header
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	if h.Revision != revision {
		return fail(fmt.Errorf("%w: it is of revision %d", ErrDamaged, h.Revision))
	}
	b.Taken, b.Cluster = h.Taken, h.ClusterID
	return b
}

// read examines a segment; newest: it may have no last frame.
func (s *Segment) read(path string, newest bool) {
	s.Last = s.First - 1
	err := s.readEnds(path, newest)
	whole := s.header.First > 0 // else not even the first line is there
	if err == nil && whole && (s.header.Run != s.Run || s.header.First != s.First) {
		err = fmt.Errorf("%s: %w: it was written as part of run %d from revision %d", s.File, ErrDamaged, s.header.Run, s.header.First)
	}
	if err != nil {
		s.Problem = err.Error()
	}
}

func (s *Segment) readEnds(path string, newest bool) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.Bytes = info.Size()
	in, err := newSegmentReader(s.File, f)
	if err != nil {
		if newest && errors.Is(err, errTorn) {
			s.Torn = s.Bytes
			return tail(f, 0, err)
		}
		return err
	}
	s.header, s.Began, s.Until = in.header, in.header.Began, in.header.Began
	if h, last, ok := endOf(f, info.Size()); ok {
		s.Last, s.Until, s.last, s.Open = h.first-1, micros(h.at), last, false
		return nil
	}
	for err == nil {
		var one frame
		if one, err = in.read(); err == nil {
			s.Last, s.Until = one.last(), micros(one.at)
		}
	}
	s.last, s.Torn = in.sum, info.Size()-in.offset
	switch {
	case errors.Is(err, io.EOF) && (newest || in.ended), newest && errors.Is(err, errTorn):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w: it has no end, and is not the newest", s.File, ErrDamaged)
	}
	return err
}

// openFile opens a file of a folder for reading. A file from another program may be a pipe, on which opening
// would block, or a link to anywhere.
func openFile(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w: it is not a regular file", filepath.Base(path), ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// IsFolder reports whether a path is a folder, as of Follow, and not a file of Backup.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// removePartial removes the remains of an interrupted base.
func removePartial(dir string) error {
	entries, err := os.ReadDir(dir) // the folder's name may be no pattern
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), basePrefix) || !strings.HasSuffix(e.Name(), partialSuffix) {
			continue
		}
		if e := os.Remove(filepath.Join(dir, e.Name())); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
