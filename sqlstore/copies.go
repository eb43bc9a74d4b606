package sqlstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A server may keep a copy of live values outside of the database, so that it need not read them
// all when it starts. Two things have to be proved of each value in it: that its row is live still,
// which the row's revision shows, and that the row has this value, which a revision alone does
// not show: the database may have gone back to an older state and on from there, or somebody may
// have changed rows in place. So the database has a key for each copy, written after the rows
// that the copy is of, and drops all keys when a live row is changed in place. A copy whose key is there
// is of rows that this very database has, whatever was done to it in between.

// ErrEdited: live rows were changed in place, or the database was changed by others, or it may have gone back to an
// older state, so that nothing that was read before can be vouched for.
var ErrEdited = errors.New("nothing that was read before is vouched for any more: rows were changed in place, or the database was started anew or is another one")

// Copies are the copies that a database vouches for.
type Copies struct {
	// Edition is of the rows, for Vouch: another one once a row was changed in place, or where the database may have
	// gone back to an older state, which has the keys that it had then.
	Edition string
	keys    []copyKey
}

type copyKey struct {
	name string
	key  [32]byte
}

// mostCopies is how many copies a database vouches for, the newest ones: that of each server that shares it,
// and the one before it, which lies there until the next is put in its place.
const mostCopies = 32

// Copier is a Driver that vouches for copies of its values.
type Copier interface {
	// Copies are those that the database vouches for. It may begin an edition.
	Copies(ctx context.Context) (Copies, error)

	// Vouch adds a copy, durably, of rows that were read in an edition, and later ones of the log.
	// Errors: ErrEdited if there is another edition by now.
	Vouch(ctx context.Context, edition, name string, key [32]byte) error

	// Outline hands out the revision of every row of the snapshot at a revision, in any order, in
	// pieces, some of them maybe twice. take may be called by several goroutines at once, and must copy
	// what it keeps. splits are keys, in order, between which there is about as much: several can
	// read at once, where a driver gains by it. Errors: CompactedError, FutureError, and those of take.
	Outline(ctx context.Context, revision int64, splits []Key, take func(revisions []int64) error) error

	// ReadRows hands out rows as WholeReader.ReadAll does: those of the revisions.
	// Errors: CompactedError where one is gone, and those of take.
	ReadRows(ctx context.Context, revisions []int64, take func(rows []Row) error) error
}

// NewCopies begins an edition.
func NewCopies() Copies {
	var b [16]byte
	rand.Read(b[:])
	return Copies{Edition: hex.EncodeToString(b[:])}
}

// Key is what the database vouches for a copy with.
func (c *Copies) Key(name string) (key [32]byte, ok bool) {
	for i := range c.keys {
		if c.keys[i].name == name {
			return c.keys[i].key, true
		}
	}
	return key, false
}

// Add adds a copy. Copies of one place have names with the same first half: of those the last one before it stays,
// as that is there until the new one takes its place, and the others go. Of many places the oldest go.
func (c *Copies) Add(name string, key [32]byte) {
	place, before := name[:len(name)/2], false
	for i := len(c.keys) - 1; i >= 0; i-- {
		if known := c.keys[i].name; known[:len(known)/2] == place {
			if before {
				c.keys = slices.Delete(c.keys, i, i+1)
			}
			before = true
		}
	}
	c.keys = append(c.keys[max(0, len(c.keys)-mostCopies+1):], copyKey{name, key})
}

// Text is what ParseCopies reads: the edition, and a line for each copy.
func (c *Copies) Text() string {
	var b strings.Builder
	b.WriteString(c.Edition)
	for i := range c.keys {
		fmt.Fprintf(&b, "\n%s %x", c.keys[i].name, c.keys[i].key)
	}
	return b.String()
}

// ParseCopies reads what a database has; false: it is nothing that Text wrote.
func ParseCopies(text string) (c Copies, ok bool) {
	lines := strings.Split(text, "\n")
	if c.Edition = lines[0]; len(c.Edition) != 32 || len(lines) > mostCopies+1 {
		return Copies{}, false
	}
	for _, line := range lines[1:] {
		name, digits, _ := strings.Cut(line, " ")
		key, err := hex.DecodeString(digits)
		if err != nil || len(key) != len(copyKey{}.key) || name == "" {
			return Copies{}, false
		}
		c.keys = append(c.keys, copyKey{name, [32]byte(key)})
	}
	return c, true
}

// Copies is the driver as one that vouches for copies, or nil; errors and times of it are
// observed as those of other reads. Rows are opened.
func (s *Store) Copies() Copier {
	if s.copier == nil {
		return nil
	}
	return storeCopier{s.copier, s}
}

type storeCopier struct {
	Copier
	s *Store
}

// Vouch implements Copier, unless what was shown to readers is ahead of the database: it has gone back below this server.
func (c storeCopier) Vouch(ctx context.Context, edition, name string, key [32]byte) error {
	shown := c.s.applied.Load()
	b, err := c.s.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("vouching for a copy: %w", err)
	}
	if b.Head < shown {
		return fmt.Errorf("vouching for a copy: %w (it is at revision %d, and %d was read)", ErrEdited, b.Head, shown)
	}
	return c.Copier.Vouch(ctx, edition, name, key)
}

func (c storeCopier) Outline(ctx context.Context, revision int64, splits []Key, take func([]int64) error) (err error) {
	began := time.Now()
	defer func() { c.s.cfg.Observer.Queried("outline", time.Since(began), err) }()
	return c.Copier.Outline(ctx, revision, splits, take)
}

func (c storeCopier) ReadRows(ctx context.Context, revisions []int64, take func([]Row) error) (err error) {
	began := time.Now()
	defer func() { c.s.cfg.Observer.Queried("read_rows", time.Since(began), err) }()
	return c.Copier.ReadRows(ctx, revisions, c.s.opening(ctx, take))
}

// Encrypts says that values of a resource are encrypted in the database, or were.
func (s *Store) Encrypts(resource string) bool {
	return s.cfg.Sealer != nil && !strings.HasPrefix(resource, "~") && s.cfg.Sealer.Covers(resource)
}
