package file

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/cache/values"
)

// Config has the place of a file, and how to write it.
type Config struct {
	Path  string
	Maker string                     // the program; another program does not read the file
	Leave func(resource string) bool // resources that are left out
	// Attest gets the file's name and key once the file is durable, before it is renamed to Path.
	Attest func(ctx context.Context, name string, key [32]byte) error
	Rate   int64 // most bytes a second; 0: no bound
}

// Written describes a file that was written.
type Written struct {
	Objects int
	Bytes   int64
}

// Writer writes a file: call Begin for each resource, and then Add for each of its objects. It needs memory for two blocks.
type Writer struct {
	ctx       context.Context
	cfg       *Config
	file      *blockfile.Writer
	began     time.Time
	directory Directory
	objects   int

	block        []byte
	values       []byte // the next block of the file, before the one in block
	first        Block  // the directory's entry for block, without At and Resource
	before       before
	dictionaries map[*packing.Codec]int
}

// Create begins a file, which Finish renames to its path. The caller must call Discard in the end.
func Create(ctx context.Context, cfg *Config) (*Writer, error) {
	f, err := blockfile.Create(cfg.Path)
	if err != nil {
		return nil, err
	}
	return &Writer{ctx: ctx, cfg: cfg, file: f, began: time.Now(), directory: Directory{Maker: cfg.Maker}}, nil
}

// Discard removes the file, unless it is finished.
func (w *Writer) Discard() { w.file.Discard() }

// Begin begins the objects of a resource; fields are the labels of its selectable fields.
func (w *Writer) Begin(resource string, fields []string) error {
	err := w.flush()
	w.directory.Resources = append(w.directory.Resources, Resource{Name: resource, Fields: fields})
	w.dictionaries = map[*packing.Codec]int{}
	return err
}

// Add adds an object of the resource, in key order, and sets its Dictionary and At.
func (w *Writer) Add(o *Object) error {
	if o.Dictionary = 0; o.With != nil {
		o.Dictionary = w.dictionary(o.With)
	}
	if len(w.values)+len(o.Value) > blockfile.MostBlock/2 {
		if err := w.flushValues(); err != nil {
			return err
		}
	}
	o.At.Block = uint32(w.file.Blocks())
	w.values, o.At.Offset = values.Append(w.values, o.Value)
	if w.first.Objects == 0 {
		w.first.Namespace, w.first.Name = o.Namespace, o.Name
	}
	w.block = o.append(w.block, &w.before)
	w.first.Objects++
	switch {
	case len(w.block) >= blockSize:
		return w.flush()
	case len(w.values) >= valueSize:
		return w.flushValues()
	}
	return nil
}

// dictionary returns the number of a dictionary among those of the resource, from 1 on.
func (w *Writer) dictionary(d *packing.Codec) int {
	n, known := w.dictionaries[d]
	if !known {
		r := &w.directory.Resources[len(w.directory.Resources)-1]
		r.Dictionaries = append(r.Dictionaries, d.Bytes())
		n = len(r.Dictionaries)
		w.dictionaries[d] = n
	}
	return n
}

// flushValues writes the block of values.
func (w *Writer) flushValues() error {
	if len(w.values) == 0 {
		return nil
	}
	err := w.file.Add(w.values)
	if w.values = w.values[:0]; cap(w.values) > maxKeptBuffer {
		w.values = nil
	}
	return cmp.Or(err, w.pause())
}

// maxKeptBuffer is the most memory for blocks of values that is kept for the next.
const maxKeptBuffer = 1 << 20

// flush writes the block of objects, after that of their values.
func (w *Writer) flush() error {
	if w.first.Objects == 0 {
		return nil
	}
	if err := w.flushValues(); err != nil {
		return err
	}
	w.first.At, w.first.Resource = w.file.Blocks(), len(w.directory.Resources)-1
	w.directory.Blocks = append(w.directory.Blocks, w.first)
	if err := w.file.Add(w.block); err != nil {
		return err
	}
	w.objects += w.first.Objects
	w.block, w.first, w.before = w.block[:0], Block{}, before{}
	return w.pause()
}

// pause sleeps as long as the rate requires.
func (w *Writer) pause() error {
	if w.cfg.Rate <= 0 {
		return w.ctx.Err()
	}
	due := time.Duration(float64(w.file.Size()) / float64(w.cfg.Rate) * float64(time.Second))
	rest := time.NewTimer(due - time.Since(w.began))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-w.ctx.Done():
	}
	return w.ctx.Err()
}

// Finish seals the file, lets the database attest to it, renames it to its path, and returns it for reading.
func (w *Writer) Finish() (done Written, f *blockfile.File, err error) {
	if err = w.flush(); err != nil {
		return done, nil, err
	}
	text, err := json.Marshal(&w.directory)
	if err == nil {
		err = w.file.Finish(text)
	}
	if err == nil {
		err = w.cfg.Attest(w.ctx, w.file.Name(), w.file.Key())
	}
	if err == nil {
		f, err = w.file.Commit()
	}
	if err != nil {
		return done, nil, fmt.Errorf("finishing the file: %w", err)
	}
	return Written{Objects: w.objects, Bytes: w.file.Size()}, f, nil
}
