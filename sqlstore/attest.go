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

// A server may keep a cache file: the live objects as they were in its memory, so that the next start need
// not read them all from the database. Its content is valid for one database only, and only for later states
// of that database. The identity of a database, as cache files see it, has three parts:
//
//   - its epoch, a random word in the database, together with a key for each file to which the database
//     attests. A file is sealed with its key, which is written after the rows in the file. A database that
//     has the key has descended from those rows, whatever backup, standby or point in time it was restored
//     from. A new epoch drops all keys;
//   - its head: a server whose cache is ahead of it has seen commits that are lost, and attests to nothing;
//   - the list of the revisions of its live rows. An object of a file is used if its revision is in the list.
//     A revision is never given to another write, and a row never changes.
//
// Editing rows with SQL breaks the last rule. After that NewEpoch must be called: `rowlock store verify
// --rebuild-cache`.

// ErrEpochChanged: the epoch of the database is not the one in which rows were read, or the database may have
// gone back to an earlier state since, so it does not attest to them.
var ErrEpochChanged = errors.New("the database was restarted, replaced or set back, or a new epoch has begun, since this server read it")

// CacheFiles are the cache files to which a database attests.
type CacheFiles struct {
	// Epoch must be passed to Attest with rows that are read from now on. In addition to the stored word, a
	// driver may include the time since which the database cannot have gone back.
	Epoch string
	files []attested
}

type attested struct {
	name string
	key  [32]byte
}

// maxAttested is the maximum number of cache files to which a database attests, the newest ones: for each
// server that shares it the current file and the previous one, which exists until it is replaced.
const maxAttested = 32

// Attestor attests to cache files.
type Attestor interface {
	// CacheFiles returns the files to which the database attests. A database without an epoch begins one.
	CacheFiles(ctx context.Context) (CacheFiles, error)

	// Attest adds a cache file, durably, with rows that were read in an epoch, and later ones of the log.
	// Errors: ErrEpochChanged.
	Attest(ctx context.Context, epoch, name string, key [32]byte) error

	// NewEpoch begins another epoch: the database attests to no existing file, nor to a file of rows that
	// were read before.
	NewEpoch(ctx context.Context) error

	// ListRevisions passes the revision of every row of the snapshot at a revision to take, in any order, in
	// pieces, some possibly twice. Several goroutines may call take at once; it must copy what it keeps.
	// splits are keys, in order, that divide the rows into parts of similar size, which a driver may read
	// concurrently. Errors: CompactedError, FutureError, and those of take.
	ListRevisions(ctx context.Context, revision int64, splits []Key, take func(revisions []int64) error) error

	// ReadRows passes the rows with the revisions to take, as Reader.ReadAll does. Errors: CompactedError if
	// one is gone, and those of take.
	ReadRows(ctx context.Context, revisions []int64, take func(rows []Row) error) error
}

// NewEpoch makes an epoch that attests to no file yet.
func NewEpoch() CacheFiles {
	var b [16]byte
	rand.Read(b[:])
	return CacheFiles{Epoch: hex.EncodeToString(b[:])}
}

// Key returns the key of a file; false: the database does not attest to it.
func (c *CacheFiles) Key(name string) (key [32]byte, ok bool) {
	for i := range c.files {
		if c.files[i].name == name {
			return c.files[i].key, true
		}
	}
	return key, false
}

// Any reports whether the database attests to any file.
func (c *CacheFiles) Any() bool { return len(c.files) > 0 }

// Add adds a file. Files at one place have names with the same first half: of those only the last one before it
// stays, because it exists until the new one replaces it. Of many places the oldest are dropped.
func (c *CacheFiles) Add(name string, key [32]byte) {
	place, before := name[:len(name)/2], false
	for i := len(c.files) - 1; i >= 0; i-- {
		if known := c.files[i].name; known[:len(known)/2] == place {
			if before {
				c.files = slices.Delete(c.files, i, i+1)
			}
			before = true
		}
	}
	c.files = append(c.files[max(0, len(c.files)-maxAttested+1):], attested{name, key})
}

// Text returns the form that ParseCacheFiles parses: the epoch, and a line for each file.
func (c *CacheFiles) Text() string {
	var b strings.Builder
	b.WriteString(c.Epoch)
	for i := range c.files {
		fmt.Fprintf(&b, "\n%s %x", c.files[i].name, c.files[i].key)
	}
	return b.String()
}

// ParseCacheFiles parses the text of a database; false: Text did not write it.
func ParseCacheFiles(text string) (c CacheFiles, ok bool) {
	lines := strings.Split(text, "\n")
	if c.Epoch = lines[0]; len(c.Epoch) != 32 || len(lines) > maxAttested+1 {
		return CacheFiles{}, false
	}
	for _, line := range lines[1:] {
		name, digits, _ := strings.Cut(line, " ")
		key, err := hex.DecodeString(digits)
		if err != nil || len(key) != len(attested{}.key) || name == "" {
			return CacheFiles{}, false
		}
		c.files = append(c.files, attested{name, [32]byte(key)})
	}
	return c, true
}

// Attestor returns the driver's Attestor, or nil. Its errors and durations are observed like those of other reads. Rows
// are decrypted.
func (s *Store) Attestor() Attestor {
	a := s.driver.Attestor()
	if a == nil {
		return nil
	}
	return storeAttestor{a, s}
}

type storeAttestor struct {
	Attestor
	s *Store
}

// Attest implements Attestor. It refuses if the database went back to an earlier state after readers had seen
// later revisions.
func (a storeAttestor) Attest(ctx context.Context, epoch, name string, key [32]byte) error {
	shown := a.s.applied.Load()
	b, err := a.s.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("attesting to a cache file: %w", err)
	}
	if b.Head < shown {
		return fmt.Errorf("attesting to a cache file: %w (its head is %d, and this server has read %d)", ErrEpochChanged, b.Head, shown)
	}
	return a.Attestor.Attest(ctx, epoch, name, key)
}

func (a storeAttestor) ListRevisions(ctx context.Context, revision int64, splits []Key, take func([]int64) error) (err error) {
	began := time.Now()
	defer func() { a.s.cfg.Observer.Queried("list_revisions", time.Since(began), err) }()
	return a.Attestor.ListRevisions(ctx, revision, splits, take)
}

func (a storeAttestor) ReadRows(ctx context.Context, revisions []int64, take func([]Row) error) (err error) {
	began := time.Now()
	defer func() { a.s.cfg.Observer.Queried("read_rows", time.Since(began), err) }()
	return a.Attestor.ReadRows(ctx, revisions, a.s.opening(ctx, take))
}

// Encrypts reports whether values of a resource are, or were, encrypted in the database.
func (s *Store) Encrypts(resource string) bool {
	return s.cfg.Sealer != nil && !strings.HasPrefix(resource, "~") && s.cfg.Sealer.Covers(resource)
}
