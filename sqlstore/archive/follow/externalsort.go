package follow

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/rowlock/rowlock/sqlstore"
)

// externalSort finds the newest row of each key among any number of rows, in the order of keys, with bounded memory:
// it sorts rows beyond that into files, and merges files of one size when there are maxFiles of them.
type externalSort struct {
	dir    string
	rowsBy map[sqlstore.Key]sqlstore.Row
	bytes  int
	made   int
	levels [][]string // files, by how often they were merged
	open   []*os.File
}

const (
	maxPiled = 32 << 20 // bytes in memory
	maxFiles = 16       // of a level
	rowCosts = 256      // bytes in addition to keys and values, about
)

// add takes a row that is newer than all before it.
func (p *externalSort) add(row *sqlstore.Row) error {
	if p.rowsBy == nil {
		p.rowsBy = make(map[sqlstore.Key]sqlstore.Row)
	}
	if old, ok := p.rowsBy[row.Key]; ok {
		p.bytes -= len(old.Value)
	} else {
		p.bytes += rowCosts + len(row.Key.Resource) + len(row.Key.Namespace) + len(row.Key.Name)
	}
	kept := *row
	kept.Value = slices.Clone(row.Value)
	if row.Deleted {
		kept.Value = nil
	}
	p.rowsBy[row.Key] = kept
	if p.bytes += len(kept.Value); p.bytes < maxPiled {
		return nil
	}
	return p.spill()
}

// spill writes the objects in memory, sorted, into a file.
func (p *externalSort) spill() error {
	if len(p.rowsBy) == 0 {
		return nil
	}
	rows := p.sorted()
	name, err := p.write(func(yield func(sqlstore.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	p.rowsBy, p.bytes = nil, 0
	return p.put(0, name)
}

func (p *externalSort) sorted() []sqlstore.Row {
	rows := make([]sqlstore.Row, 0, len(p.rowsBy))
	for _, row := range p.rowsBy {
		rows = append(rows, row)
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Key.Compare(rows[j].Key) < 0 })
	return rows
}

func (p *externalSort) put(level int, name string) error {
	if level == len(p.levels) {
		p.levels = append(p.levels, nil)
	}
	p.levels[level] = append(p.levels[level], name)
	if len(p.levels[level]) < maxFiles {
		return nil
	}
	files := p.levels[level]
	p.levels[level] = nil
	merged, err := p.write(p.merge(files))
	if err != nil {
		return err
	}
	p.close()
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return p.put(level+1, merged)
}

// seal makes rows yield the added rows.
func (p *externalSort) seal() error {
	if len(p.levels) == 0 {
		return nil // all is in memory
	}
	return p.spill()
}

// rows yields the newest row of each key, in the order of keys.
func (p *externalSort) rows(yield func(sqlstore.Row, error) bool) {
	if len(p.levels) == 0 {
		for _, row := range p.sorted() {
			if !yield(row, nil) {
				return
			}
		}
		return
	}
	p.merge(slices.Concat(p.levels...))(yield)
}

func (p *externalSort) close() {
	for _, f := range p.open {
		f.Close()
	}
	p.open = nil
}

func (p *externalSort) write(rows iter.Seq2[sqlstore.Row, error]) (path string, err error) {
	p.made++
	path = filepath.Join(p.dir, fmt.Sprintf("sorted-%d", p.made))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	out := bufio.NewWriterSize(f, 256<<10)
	var buf []byte
	for row, err := range rows {
		if err != nil {
			return "", err
		}
		buf = binary.AppendUvarint(buf[:0], uint64(row.Revision))
		buf = appendRow(buf, &sqlstore.Change{Row: row})
		if _, err := out.Write(buf); err != nil {
			return "", err
		}
	}
	return path, out.Flush()
}

// source is a sorted file that is read.
type source struct {
	in  *bufio.Reader
	row sqlstore.Row
}

// next reads the next row; false at the end.
func (s *source) next() (bool, error) {
	revision, err := binary.ReadUvarint(s.in)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	size, err := binary.ReadUvarint(s.in)
	if err != nil || size > longest {
		return false, fmt.Errorf("a temporary file is damaged: %w", err)
	}
	body := binary.AppendUvarint(make([]byte, 0, size+binary.MaxVarintLen64), size)
	body = body[:len(body)+int(size)]
	if _, err := io.ReadFull(s.in, body[len(body)-int(size):]); err != nil {
		return false, err
	}
	r := rowReader{data: body, revision: int64(revision)}
	c, err := r.next()
	s.row = c.Row
	return true, err
}

// merge yields the newest row of each key of sorted files.
func (p *externalSort) merge(files []string) iter.Seq2[sqlstore.Row, error] {
	return func(yield func(sqlstore.Row, error) bool) {
		var sources []*source
		for _, name := range files {
			f, err := os.Open(name)
			if err != nil {
				yield(sqlstore.Row{}, err)
				return
			}
			p.open = append(p.open, f)
			s := &source{in: bufio.NewReaderSize(f, 64<<10)}
			if ok, err := s.next(); err != nil {
				yield(sqlstore.Row{}, err)
				return
			} else if ok {
				sources = append(sources, s)
			}
		}
		for len(sources) > 0 {
			// Few files: checking each is no more work than a heap.
			first := slices.MinFunc(sources, func(a, b *source) int {
				return cmp.Or(a.row.Key.Compare(b.row.Key), -cmp.Compare(a.row.Revision, b.row.Revision))
			})
			row := first.row
			if !yield(row, nil) {
				return
			}
			for i := 0; i < len(sources); {
				s := sources[i]
				ok, err := true, error(nil)
				if s.row.Key == row.Key {
					ok, err = s.next()
				}
				if err != nil {
					yield(sqlstore.Row{}, err)
					return
				}
				if !ok {
					sources = slices.Delete(sources, i, i+1)
					continue
				}
				i++
			}
		}
	}
}
