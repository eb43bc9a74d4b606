package file

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/packing"
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

// Writer writes a file: call Begin for each resource, and then Add for each of its objects. It needs memory for a block.
type Writer struct {
	ctx       context.Context
	cfg       *Config
	file      *blockfile.Writer
	began     time.Time
	directory Directory
	objects   int

	block        []byte
	first        Block // what is known of the block
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

// Add adds an object of the resource, in key order.
func (w *Writer) Add(o *Object) error {
	dictionary := 0
	if o.With != nil {
		dictionary = w.dictionary(o.With)
	}
	if w.first.Objects == 0 {
		w.first.Namespace, w.first.Name = o.Namespace, o.Name
	}
	w.block = o.append(w.block, dictionary, &w.before)
	w.first.Objects++
	if len(w.block) < blockSize {
		return nil
	}
	return w.flush()
}

// dictionary is the number of a dictionary among those of the resource.
func (w *Writer) dictionary(d *packing.Codec) int {
	n, known := w.dictionaries[d]
	if !known {
		r := &w.directory.Resources[len(w.directory.Resources)-1]
		n = len(r.Dictionaries)
		w.dictionaries[d] = n
		r.Dictionaries = append(r.Dictionaries, d.Bytes())
	}
	return n
}

func (w *Writer) flush() error {
	if w.first.Objects == 0 {
		return nil
	}
	w.first.Resource = len(w.directory.Resources) - 1
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

// Finish seals the file, lets the database attest to it, and renames it to its path.
func (w *Writer) Finish() (done Written, err error) {
	if err = w.flush(); err != nil {
		return done, err
	}
	text, err := json.Marshal(&w.directory)
	if err == nil {
		err = w.file.Finish(text)
	}
	if err == nil {
		err = w.cfg.Attest(w.ctx, w.file.Name(), w.file.Key())
	}
	if err == nil {
		err = w.file.Commit()
	}
	if err != nil {
		return done, fmt.Errorf("finishing the file: %w", err)
	}
	return Written{Objects: w.objects, Bytes: w.file.Size()}, nil
}
