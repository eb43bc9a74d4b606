package cache

import (
	"context"
	"fmt"

	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/kinds"
)

// WriteFile writes the live objects to a cache file, as they lie in memory, beside readers and writers. It needs
// a block's memory, and holds the states that it is writing. What cannot be read, and the
// server's own rows, are left out.
func (c *Cache) WriteFile(ctx context.Context, cfg *file.Config) (done file.Written, err error) {
	w, err := file.Create(ctx, cfg)
	if err != nil {
		return done, fmt.Errorf("writing a cache file: %w", err)
	}
	defer w.Discard()
	for _, key := range c.Storages() {
		if s := c.resource(key); !s.internal && !cfg.Leave(key) {
			if err := s.write(w); err != nil {
				return done, fmt.Errorf("writing a cache file, %s: %w", key, err)
			}
		}
	}
	if done, err = w.Finish(); err != nil {
		return done, fmt.Errorf("writing a cache file: %w", err)
	}
	return done, nil
}

func (s *resource) write(w *file.Writer) error {
	if err := w.Begin(s.key, fieldLabels(s.storage.Load())); err != nil {
		return err
	}
	var err error
	s.state().items.Scan(func(it *Item) bool {
		b := it.body.Load()
		if it.Corrupt != nil || b.bare() {
			return true
		}
		o := file.Object{Namespace: it.Namespace, Name: it.Name, Revision: it.Revision, Created: it.Created, Head: int(it.head), Data: b.data}
		if b.packed() {
			o.With, o.Size, o.Split, o.Common = b.with.objects, int(b.size), int(b.split), b.common
		}
		err = w.Add(&o)
		return err == nil
	})
	return err
}

// fieldLabels are those of a storage's selectable fields.
func fieldLabels(st *kinds.Storage) (labels []string) {
	if st != nil {
		for _, f := range st.Fields {
			labels = append(labels, f.Label)
		}
	}
	return labels
}
