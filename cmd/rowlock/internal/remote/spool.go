package remote

import (
	"bufio"
	"cmp"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Spool stores objects in a file, resource by resource, so that they can be read several times without holding
// them in memory. The file belongs to its owner only, has no name where the system allows that, and is encrypted
// with a key that only this process has. Close, or the end of the process, removes it.
type Spool struct {
	file     *os.File
	named    bool // the file could not be without a name
	keys     sealing
	w        *bufio.Writer
	begun    uint64 // streams of the key so far
	end      int64  // bytes so far
	most     int64
	index    int64 // bytes of memory for Ordered
	sections []Section
}

// Section is the part of a Spool for one resource.
type Section struct {
	Resource Resource
	Listed   Listed
	from, to int64
	stream   uint64 // of the key
}

// NewSpool creates an empty spool in a folder ("": the system's temporary folder), with limits on its bytes and on the
// memory of Ordered (0: 4 GiB).
func NewSpool(dir string, most, index int64) (*Spool, error) {
	keys, err := newSealing()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "rowlock-objects-*")
	if err != nil {
		return nil, fmt.Errorf("a file for the objects: %w", err)
	}
	return &Spool{file: f, named: os.Remove(f.Name()) != nil, keys: keys, w: bufio.NewWriterSize(f, 1<<18), most: most, index: cmp.Or(index, 4<<30)}, nil
}

// Close removes the file. If the file has no name any more, a new file of that name is not touched.
func (s *Spool) Close() error {
	err := s.file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

// Bytes returns the size of the content.
func (s *Spool) Bytes() int64 { return s.end }

// Sections returns the resources, in the order of their arrival.
func (s *Spool) Sections() []Section { return s.sections }

// Open starts the section of a resource. One section is open at a time.
func (s *Spool) Open(r Resource) *SectionWriter {
	t := &SectionWriter{s: s, resource: r}
	if n := len(s.sections); n > 0 {
		t.from = s.sections[n-1].to
	}
	return t
}

// SectionWriter is a section that is being written: the Sink of one resource.
type SectionWriter struct {
	s        *Spool
	resource Resource
	from     int64
	stream   uint64             // of the key; 0: it has not begun
	each     func(Object) error // may be nil
}

// Begin discards the objects of the resource so far. Each attempt uses another stream of the key: two texts under
// one stream would reveal each other.
func (t *SectionWriter) Begin() error {
	if err := t.s.file.Truncate(t.from); err != nil {
		return err
	}
	if _, err := t.s.file.Seek(t.from, io.SeekStart); err != nil {
		return err
	}
	t.s.begun++
	t.s.end, t.stream = t.from, t.s.begun
	t.s.w.Reset(cipher.StreamWriter{S: t.s.keys.stream(t.stream, 0), W: t.s.file})
	return nil
}

// Put adds an object.
func (t *SectionWriter) Put(o Object) error {
	if t.stream == 0 {
		if err := t.Begin(); err != nil {
			return err
		}
	}
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

// Close completes the section. Without it the section is discarded by the next.
func (t *SectionWriter) Close(l Listed) error {
	if t.stream == 0 {
		if err := t.Begin(); err != nil {
			return err
		}
	}
	t.s.sections = append(t.s.sections, Section{Resource: t.resource, Listed: l, from: t.from, to: t.s.end, stream: t.stream})
	return t.s.w.Flush()
}

// Objects returns the objects of a section in their order. Each is valid until the next. Several sections may be read
// at a time while nothing is written.
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

// Raw is Objects without parsing them.
func (s *Spool) Raw(of Section) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(cipher.StreamReader{S: s.keys.stream(of.stream, 0), R: io.NewSectionReader(s.file, of.from, of.to-of.from)}, 1<<18)
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
				yield(nil, fmt.Errorf("reading the collected objects: %w", err))
				return
			}
			if !yield(data, nil) {
				return
			}
		}
	}
}
