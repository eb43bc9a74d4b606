package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/packing"
)

// CopyConfig says what a copy is to be like, and where.
type CopyConfig struct {
	Path  string
	Maker string                     // names the program: another one does not read the copy
	Leave func(resource string) bool // resources that are left out
	// Attest is told the copy's name and key when all of it is on the disk, before it is under Path.
	Attest func(ctx context.Context, name string, key [32]byte) error
	Rate   int64 // most bytes a second; 0: as it goes
}

// Copied is what came of a copy.
type Copied struct {
	Objects int
	Bytes   int64
}

// WriteCopy writes the live objects to a file, as they lie in memory, beside readers and writers. It needs
// a block's memory, and holds the states that it is writing. What cannot be read, and the
// server's own rows, are left out.
func (c *Cache) WriteCopy(ctx context.Context, cfg CopyConfig) (done Copied, err error) {
	file, err := blockfile.Create(cfg.Path)
	if err != nil {
		return done, fmt.Errorf("writing a copy: %w", err)
	}
	defer file.Discard()
	w := &copyWriter{ctx: ctx, cfg: &cfg, file: file, began: time.Now()}
	w.about.Maker = cfg.Maker
	for _, key := range c.Storages() {
		if s := c.resource(key); !s.internal && !cfg.Leave(key) {
			if err := w.resource(s); err != nil {
				return done, fmt.Errorf("writing a copy of %s: %w", key, err)
			}
		}
	}
	text, err := json.Marshal(&w.about)
	if err == nil {
		err = file.Finish(text)
	}
	if err == nil {
		err = cfg.Attest(ctx, file.Name(), file.Key())
	}
	if err == nil {
		err = file.Commit()
	}
	if err != nil {
		return done, fmt.Errorf("writing a copy: %w", err)
	}
	return Copied{Objects: w.objects, Bytes: file.Size()}, nil
}

// copyWriter writes one copy.
type copyWriter struct {
	ctx     context.Context
	cfg     *CopyConfig
	file    *blockfile.Writer
	began   time.Time
	about   about
	objects int

	block        []byte
	count        int // objects in block
	first        *Item
	before       copyBefore
	dictionaries map[*packing.Codec]int
}

func (w *copyWriter) resource(s *resource) (err error) {
	w.about.Resources = append(w.about.Resources, aboutResource{Name: s.key, Fields: fieldLabels(s.storage.Load())})
	w.dictionaries = map[*packing.Codec]int{}
	s.state().items.Scan(func(it *Item) bool {
		if it.Corrupt == nil {
			err = w.item(it)
		}
		return err == nil
	})
	if err == nil {
		err = w.flush()
	}
	return err
}

func (w *copyWriter) item(it *Item) error {
	b := it.body.Load()
	if b.bare() {
		return nil
	}
	dictionary := 0
	if b.packed() {
		dictionary = w.dictionary(b.with.objects)
	}
	if w.count == 0 {
		w.first = it
	}
	w.block = copyRecord(w.block, it, b, dictionary, &w.before)
	w.count++
	if len(w.block) < copyBlock {
		return nil
	}
	return w.flush()
}

// dictionary is the number of a dictionary among those of the resource.
func (w *copyWriter) dictionary(d *packing.Codec) int {
	n, known := w.dictionaries[d]
	if !known {
		r := &w.about.Resources[len(w.about.Resources)-1]
		n = len(r.Dictionaries)
		w.dictionaries[d] = n
		r.Dictionaries = append(r.Dictionaries, d.Bytes())
	}
	return n
}

func (w *copyWriter) flush() error {
	if w.count == 0 {
		return nil
	}
	w.about.Blocks = append(w.about.Blocks, aboutBlock{len(w.about.Resources) - 1, w.count, w.first.Namespace, w.first.Name})
	if err := w.file.Add(w.block); err != nil {
		return err
	}
	w.objects += w.count
	w.block, w.count, w.first, w.before = w.block[:0], 0, nil, copyBefore{}
	return w.pause()
}

// pause keeps to the rate.
func (w *copyWriter) pause() error {
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
