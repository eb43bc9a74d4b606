package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Spool keeps objects in a file, resource by resource, so that they can be read more
// than once and none of them is in memory. The file has no name where the system
// allows that, nobody else may read it, and it is gone with Close.
type Spool struct {
	file     *os.File
	w        *bufio.Writer
	end      int64 // bytes so far
	most     int64
	sections []Section
}

// Section is what a Spool has of one resource.
type Section struct {
	Resource Resource
	Listed   Listed
	from, to int64
}

// NewSpool makes an empty one in a folder ("": the system's for temporary files) that
// takes so many bytes.
func NewSpool(dir string, most int64) (*Spool, error) {
	f, err := os.CreateTemp(dir, "rowlock-objects-*")
	if err != nil {
		return nil, fmt.Errorf("a file for the objects: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file cannot be removed, Close does it
	return &Spool{file: f, w: bufio.NewWriterSize(f, 1<<18), most: most}, nil
}

// Close takes the file away.
func (s *Spool) Close() error {
	err := s.file.Close()
	if e := os.Remove(s.file.Name()); err == nil && !errors.Is(e, os.ErrNotExist) {
		err = e
	}
	return err
}

// Bytes are how much it holds.
func (s *Spool) Bytes() int64 { return s.end }

// Sections are the resources that it has, in the order in which they came.
func (s *Spool) Sections() []Section { return s.sections }

// Open begins the section of a resource. One is open at a time.
func (s *Spool) Open(r Resource) *Filling { return &Filling{s: s, resource: r, from: s.end} }

// Filling is a section that is being filled: a Sink for one resource.
type Filling struct {
	s        *Spool
	resource Resource
	from     int64
	each     func(Object) error // may be nil
}

// Begin forgets what came of the resource.
func (t *Filling) Begin() error {
	if err := t.s.w.Flush(); err != nil {
		return err
	}
	if err := t.s.file.Truncate(t.from); err != nil {
		return err
	}
	t.s.end = t.from
	_, err := t.s.file.Seek(t.from, io.SeekStart)
	return err
}

// Put adds an object.
func (t *Filling) Put(o Object) error {
	if t.each != nil {
		if err := t.each(o); err != nil {
			return err
		}
	}
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(o.JSON)))
	if t.s.end += int64(n + len(o.JSON)); t.s.end > t.s.most {
		return &BoundError{Path: o.Resource.Path(""), Bound: fmt.Sprintf("all objects together have more than %d bytes", t.s.most)}
	}
	if _, err := t.s.w.Write(size[:n]); err != nil {
		return err
	}
	_, err := t.s.w.Write(o.JSON)
	return err
}

// Close ends the section; without it, what came is forgotten with the next.
func (t *Filling) Close(l Listed) error {
	t.s.sections = append(t.s.sections, Section{t.resource, l, t.from, t.s.end})
	return t.s.w.Flush()
}

// Objects are those of a section, in the order in which they were listed. Each is valid
// until the next. Several may be read at a time, while nothing is put.
func (s *Spool) Objects(of Section) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for data, err := range s.Raw(of) {
			var o Object
			if err == nil {
				o, err = item(of.Resource, data)
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// Raw is Objects that does not look into them.
func (s *Spool) Raw(of Section) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(io.NewSectionReader(s.file, of.from, of.to-of.from), 1<<18)
		var data []byte
		for {
			size, err := binary.ReadUvarint(in)
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && cap(data) < int(size) {
				data = make([]byte, size+size/2)
			}
			if err == nil {
				data = data[:size]
				_, err = io.ReadFull(in, data)
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading what was collected: %w", err))
				return
			}
			if !yield(data, nil) {
				return
			}
		}
	}
}
