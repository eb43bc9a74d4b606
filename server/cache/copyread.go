package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"unique"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/sqlstore"
)

// ErrOtherMaker: a copy was written by another program, which may be another version of this one.
var ErrOtherMaker = errors.New("the copy was made by another version of the program")

// Copy is a copy that is open, and vouched for by the database.
type Copy struct {
	file  *blockfile.File
	about about
}

// OpenCopy opens the copy at cfg.Path if it is among those that the database vouches for.
// One that has objects of what is to be left out now is removed, whoever wrote it: encryption may
// have been turned on since, and what lies there would not be encrypted as is wanted.
// Errors: ErrNotVouched, ErrOtherMaker, ErrLeftOut, blockfile.ErrDamaged, and those of the system.
func OpenCopy(cfg CopyConfig, known *sqlstore.Copies) (_ *Copy, err error) {
	file, err := blockfile.Open(cfg.Path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	key, ok := known.Key(file.Name())
	if !ok {
		return nil, ErrNotVouched
	}
	text, err := file.Unseal(key)
	if err != nil {
		return nil, err
	}
	p := &Copy{file: file}
	if err := json.Unmarshal(text, &p.about); err != nil || len(p.about.Blocks) != file.Blocks() {
		return nil, fmt.Errorf("%w: its directory", blockfile.ErrDamaged)
	}
	for _, b := range p.about.Blocks {
		if b.Resource < 0 || b.Resource >= len(p.about.Resources) {
			return nil, fmt.Errorf("%w: its directory", blockfile.ErrDamaged)
		}
		if name := p.about.Resources[b.Resource].Name; cfg.Leave(name) {
			file.Close()
			return nil, errors.Join(fmt.Errorf("%w: %s", ErrLeftOut, name), os.Remove(cfg.Path))
		}
	}
	if p.about.Maker != cfg.Maker {
		return nil, ErrOtherMaker
	}
	return p, nil
}

// ErrLeftOut: a copy had objects that must not be in one any more, and was removed.
var ErrLeftOut = errors.New("the copy had objects that are not to be in one any more, and is removed")

// ErrNotVouched: the database does not vouch for a copy: rows were changed in place since, or it is
// that of another database, or of another state of this one.
var ErrNotVouched = errors.New("the database does not vouch for the copy")

// Size is the file's, in bytes.
func (p *Copy) Size() int64 { return p.file.Size() }

// Close ends reading.
func (p *Copy) Close() error { return p.file.Close() }

// Loaded says where the objects of a load came from.
type Loaded struct {
	Revision           int64
	FromCopy, FromRows int
}

// LoadCopy is Load, of what is live among the objects of a copy and, from the database, of what is not in
// it. An error that is none of the database's is the copy's: then Load is to be called.
func (c *Cache) LoadCopy(ctx context.Context, s Source, from sqlstore.Copier, p *Copy) (done Loaded, err error) {
	if done.Revision, err = s.Head(ctx); err != nil {
		return done, err
	}
	r := &copyLoading{loading: loading{cache: c, found: map[*resource]*loaded{}}, copy: p}
	if err := r.resources(); err != nil {
		return done, err
	}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return r.outline(within, from, done.Revision) })
	group.Go(func() error { return r.blocks(within) })
	if err := group.Wait(); err != nil {
		return done, err
	}
	done.FromCopy = r.keep()
	rest := r.missing()
	if err := from.ReadRows(ctx, rest, r.take); err != nil {
		return done, err
	}
	done.FromRows = len(rest)
	r.sort()
	c.replace(r.found, done.Revision)
	c.publish(done.Revision)
	return done, nil
}

// copyLoading reads a copy, and beside it which rows are live.
type copyLoading struct {
	loading
	copy *Copy
	of   []*copyOf // by resource; nil: it is not read from the copy
	made []madeBlock
	live []int64 // revisions, in order
	seen []atomic.Bool
}

// copyOf is what it takes to read objects of a resource.
type copyOf struct {
	s      *resource
	keys   *[]string
	shapes []*shape
}

// madeBlock is the objects of a block, with the entries of their fields.
type madeBlock struct {
	items   []*Item
	entries []posting
}

// resources gets ready for what the copy has objects of. What the catalogue has other fields of
// is read from the database.
func (r *copyLoading) resources() error {
	for _, a := range r.copy.about.Resources {
		s := r.cache.resource(a.Name)
		st := s.storage.Load()
		if s.internal || st != nil && !slices.Equal(a.Fields, fieldLabels(st)) {
			r.of = append(r.of, nil)
			continue
		}
		of := &copyOf{s: s, keys: s.keys.Load()}
		for _, b := range a.Dictionaries {
			d := dictionary.Parse(b)
			if d == nil {
				return fmt.Errorf("%w: a dictionary of %s", blockfile.ErrDamaged, a.Name)
			}
			of.shapes = append(of.shapes, &shape{storage: st, objects: &packing{d}})
		}
		if n := len(of.shapes); n > 0 {
			s.packer.adopt(of.shapes[n-1])
		}
		r.of = append(r.of, of)
	}
	return nil
}

// adopt has objects be packed as those of a copy were.
func (p *packer) adopt(of *shape) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects.with == nil {
		p.objects, p.shape = learned{with: of.objects}, of
	}
}

// outline finds out which revisions are live.
func (r *copyLoading) outline(ctx context.Context, from sqlstore.Copier, revision int64) error {
	var splits []sqlstore.Key
	for _, b := range r.copy.about.Blocks {
		splits = append(splits, sqlstore.Key{Resource: r.copy.about.Resources[b.Resource].Name, Namespace: b.Namespace, Name: b.Name})
	}
	slices.SortFunc(splits, sqlstore.Key.Compare)
	if err := from.Outline(ctx, revision, splits, func(piece []int64) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.live = append(r.live, piece...)
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(r.live)
	r.live = slices.Compact(r.live)
	r.seen = make([]atomic.Bool, len(r.live))
	return nil
}

// each calls fn for each block, on all processors.
func (r *copyLoading) each(ctx context.Context, fn func(i int, room *[]byte) error) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			var room []byte
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(r.copy.about.Blocks) {
					return nil
				}
				if err := fn(i, &room); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// blocks makes the objects of all blocks, live or not.
func (r *copyLoading) blocks(ctx context.Context) error {
	r.made = make([]madeBlock, len(r.copy.about.Blocks))
	return r.each(ctx, func(i int, room *[]byte) (err error) {
		at := &r.copy.about.Blocks[i]
		of := r.of[at.Resource]
		if of == nil {
			return nil
		}
		if *room, err = r.copy.file.Block(i, *room); err == nil {
			r.made[i], err = of.make(*room, at.Objects)
		}
		return err
	})
}

// make makes the objects of a block.
func (of *copyOf) make(block []byte, count int) (made madeBlock, err error) {
	if count < 0 || count > len(block) {
		return made, errCopyForm
	}
	made.items = make([]*Item, 0, count)
	reader := copyReader{of: of.s, shapes: of.shapes, left: cursor{b: block}}
	terms := fieldTerms(*of.keys)
	var fields []string
	for range count {
		it, values, err := reader.next(fields)
		if err != nil {
			return made, err
		}
		made.items = append(made.items, it)
		enter := func(t term) { made.entries = append(made.entries, posting{unique.Make(t), it}) }
		switch {
		case len(*of.keys) == 0:
		case values == nil:
			terms(it, enter)
		default:
			for i, key := range *of.keys {
				if key != "" {
					enter(term{key, values[i]})
				}
			}
		}
		if values != nil {
			fields = values
		}
	}
	if len(reader.left.b) > 0 {
		return made, errCopyForm
	}
	return made, nil
}

// keep takes those of the copy's objects that are live, each once, and says how many.
func (r *copyLoading) keep() (n int) {
	var kept atomic.Int64
	_ = r.each(context.Background(), func(i int, _ *[]byte) error {
		made := &r.made[i]
		if len(made.items) == 0 {
			return nil
		}
		of := r.of[r.copy.about.Blocks[i].Resource]
		before := len(made.items)
		made.items = slices.DeleteFunc(made.items, func(it *Item) bool { return !r.is(it.Revision) })
		if len(made.items) < before {
			left := make(map[*Item]bool, len(made.items))
			for _, it := range made.items {
				left[it] = true
			}
			made.entries = slices.DeleteFunc(made.entries, func(p posting) bool { return !left[p.item] })
		}
		for _, it := range made.items {
			if b := it.body.Load(); !b.packed() {
				of.s.plain.grow(len(b.data))
			}
		}
		kept.Add(int64(len(made.items)))
		r.add(of.s, of.keys, made.items, made.entries)
		*made = madeBlock{}
		return nil
	})
	return int(kept.Load())
}

// is says that a revision is live, the first time that it is asked for it.
func (r *copyLoading) is(revision int64) bool {
	at, found := slices.BinarySearch(r.live, revision)
	return found && !r.seen[at].Swap(true)
}

// missing are the revisions of live rows that are not in the copy.
func (r *copyLoading) missing() (rest []int64) {
	for i, revision := range r.live {
		if !r.seen[i].Load() {
			rest = append(rest, revision)
		}
	}
	return rest
}
