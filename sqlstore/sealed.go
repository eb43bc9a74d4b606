package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Values are encrypted by the goroutine that writes them, before the group commit: a slow key server delays
// only the writers that need it. They are decrypted by the goroutine that reads them, where rows leave the
// driver. Store does this, and not a Driver around the driver, for three reasons: the feed shows own commits
// from the plain values in memory; the expiry of a row writes its stored bytes back without a key; and
// backups and commands that work on drivers see the bytes in the table.
//
// Cost: a write causes one Seal in the user's own goroutine, and a write of the same value one read of a row
// and one Open. Each row that this server did not write is decrypted once; a key that fails slowly is not
// tried again for a while (slowKeys), so that rows under an unavailable key delay others by a bounded time.

// opened is a decrypted value, or the reason why it is unknown.
type opened struct {
	value []byte
	err   error
}

// show replaces the stored value in a row by the plain value of its operation.
func (w *write) show(i int, row *Row) {
	if w.plain != nil {
		row.Value, row.Unopened = w.plain[i].value, w.plain[i].err
	}
}

// sealable reports whether rows of a resource may be encrypted. The server's own rows contain only names, and are
// compared as stored.
func sealable(key *Key) bool { return !strings.HasPrefix(key.Resource, "~") }

// seal encrypts the values of a write. Errors: SealError, and those of ctx.
func (s *Store) seal(ctx context.Context, w *write) error {
	if s.cfg.Sealer == nil {
		return nil
	}
	var ops []Op // allocated when a stored value differs
	for i := range w.txn.Ops {
		op := &w.txn.Ops[i]
		if !sealable(&op.Key) {
			continue
		}
		stored, plain, err := s.sealOne(ctx, op)
		if err != nil {
			return err
		}
		if plain.err == nil && same(stored, plain.value) {
			continue
		}
		if ops == nil {
			ops = append([]Op(nil), w.txn.Ops...)
			w.plain = make([]opened, len(ops))
			for j := range ops {
				w.plain[j].value = ops[j].Value
			}
		}
		w.size += len(stored) - len(op.Value)
		ops[i].Value, w.plain[i] = stored, plain
	}
	if ops != nil {
		w.txn.Ops = ops
	}
	return nil
}

// sealOne returns the stored value of an operation, and the value for the sink.
func (s *Store) sealOne(ctx context.Context, op *Op) (stored []byte, plain opened, err error) {
	if op.AsStored {
		plain.value, _, plain.err = s.open(ctx, op.Key, op.Value)
		if plain.err != nil {
			plain.value = op.Value
		}
		return op.Value, plain, nil
	}
	plain.value = op.Value
	if stored, err = s.cfg.Sealer.Seal(ctx, op.Key, op.Value); err == nil {
		return stored, plain, nil
	}
	// A delete needs no key: its last state is then the one in the table.
	var sealing *SealError
	if op.Verb == Delete && errors.As(err, &sealing) {
		row, e := s.driver.Read(ctx, op.Key, 0)
		var gone *NotFoundError
		switch {
		case e == nil && row.Revision == op.Expect:
			return row.Value, plain, nil
		case e == nil: // the delete fails, with or without a key
			return nil, plain, &ConflictError{Key: op.Key, Expect: op.Expect, Current: row}
		case errors.As(e, &gone):
			return nil, plain, gone
		}
	}
	return nil, plain, err
}

// same reports whether two values are the same memory, as they are if nothing was encrypted.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Sealable returns the reason why a value of a key cannot be encrypted now, or nil. Errors: SealError, those
// of ctx.
func (s *Store) Sealable(ctx context.Context, key Key) error {
	if s.cfg.Sealer == nil || !sealable(&key) {
		return nil
	}
	_, err := s.cfg.Sealer.Seal(ctx, key, nil)
	return err
}

// Sealed reports whether values may be encrypted.
func (s *Store) Sealed() bool { return s.cfg.Sealer != nil }

// Stale reports whether writing a live row's value again would store other bytes: it was encrypted by another
// provider or key, or cannot be decrypted any more. It reads the row, unless nothing of the resource is encrypted.
func (s *Store) Stale(ctx context.Context, key Key, revision int64) bool {
	if s.cfg.Sealer == nil || !sealable(&key) || !s.cfg.Sealer.Covers(key.Resource) {
		return false
	}
	row, err := s.driver.Read(ctx, key, 0)
	if err != nil || row.Revision != revision {
		return false
	}
	_, stale, err := s.cfg.Sealer.Open(ctx, key, row.Value)
	return stale || err != nil
}

// Open decrypts the stored bytes of a key, as of a row that could not be decrypted when it was read. Errors:
// UnsealError, those of ctx.
func (s *Store) Open(ctx context.Context, key Key, stored []byte) ([]byte, error) {
	if s.cfg.Sealer == nil || !sealable(&key) {
		return stored, nil
	}
	plain, _, err := s.open(ctx, key, stored)
	return plain, err
}

// open is Sealer.Open, except for keys that recently took long to fail.
func (s *Store) open(ctx context.Context, key Key, stored []byte) (plain []byte, stale bool, err error) {
	provider, name, _, sealed := SealedBy(stored)
	if !sealed {
		return s.cfg.Sealer.Open(ctx, key, stored)
	}
	began := s.cfg.Elapsed()
	if cause := s.slow.recent(provider, name, began); cause != nil {
		return nil, false, &UnsealError{Key: key, Provider: provider, KeyName: name, Err: cause}
	}
	if plain, stale, err = s.cfg.Sealer.Open(ctx, key, stored); err == nil {
		return plain, stale, nil
	}
	var unseal *UnsealError
	if !errors.As(err, &unseal) { // the end of ctx, which reveals nothing about the value
		unseal = &UnsealError{Key: key, Provider: provider, KeyName: name, Err: fmt.Errorf("%w: %w", ErrKeyUnavailable, err)}
	}
	if s.cfg.Elapsed()-began >= slowFailure && strings.HasPrefix(provider, "kms") {
		s.slow.failed(provider, name, s.cfg.Elapsed(), unseal.Err)
	}
	return nil, false, unseal
}

func (s *Store) openRow(ctx context.Context, row *Row) {
	if s.cfg.Sealer == nil || !sealable(&row.Key) || row.Damaged != nil {
		return
	}
	plain, stale, err := s.open(ctx, row.Key, row.Value)
	if err != nil {
		row.Unopened = err
		return
	}
	row.Value, row.Stale = plain, stale
}

func (s *Store) openRows(ctx context.Context, rows []Row) {
	if s.cfg.Sealer == nil {
		return
	}
	all := make([]*Row, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	s.openAll(ctx, all, s.readSlots)
}

// atOnce is the number of values that are decrypted concurrently if each may cause a call of a key server.
const atOnce = 16

// openAll decrypts rows: one after another, and concurrently those that may cause a call each. It waits for all.
func (s *Store) openAll(ctx context.Context, rows []*Row, places chan struct{}) {
	var calls []*Row
	for _, r := range rows {
		if bytes.HasPrefix(r.Value, oneCallEach) {
			calls = append(calls, r)
		} else {
			s.openRow(ctx, r)
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(atOnce, len(calls)) {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(len(calls)); i = next.Add(1) {
				s.openInTurn(ctx, calls[i-1], places)
			}
		})
	}
	workers.Wait()
}

// openInTurn is openRow after a wait for one of the places that all pages share: waiting inside the plugin
// instead would use up the time of the call. The feed has separate places, so that large reads do not delay
// it.
func (s *Store) openInTurn(ctx context.Context, row *Row, places chan struct{}) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done(): // openRow returns the error
	}
	s.openRow(ctx, row)
}

// oneCallEach is the prefix of values that have a data key of their own.
var oneCallEach = []byte(SealedPrefix + "kmsv1:")

// openChanges decrypts changes that are not known to be plain.
func (s *Store) openChanges(ctx context.Context, changes []Change, own []bool, places chan struct{}) {
	if s.cfg.Sealer == nil {
		return
	}
	rows := make([]*Row, 0, 2*len(changes))
	before := make([]Row, len(changes))
	for i := range changes {
		c := &changes[i]
		if own == nil || !own[i] {
			rows = append(rows, &c.Row)
		}
		if c.PrevValue != nil {
			before[i] = Row{Key: c.Key, Value: c.PrevValue, Damaged: c.PrevDamaged}
			rows = append(rows, &before[i])
		}
	}
	s.openAll(ctx, rows, places)
	for i := range changes {
		if c := &changes[i]; c.PrevValue != nil {
			c.PrevValue, c.PrevUnopened = before[i].Value, before[i].Unopened
		}
	}
}

// feedOpens bounds how long the feed waits for the keys of one page of changes. It then marks the values that are
// not decrypted yet as Unopened, and the sink may decrypt them later.
const feedOpens = 3 * time.Second

// openFed is openChanges for the feed, which must not wait long.
func (f *feed) openFed(ctx context.Context, changes []Change, own []bool) {
	if f.cfg.Sealer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, feedOpens)
	defer cancel()
	f.openChanges(ctx, changes, own, f.feedSlots)
}

// opening decrypts rows before it passes them to take.
func (s *Store) opening(ctx context.Context, take func([]Row) error) func([]Row) error {
	if s.cfg.Sealer == nil {
		return take
	}
	return func(rows []Row) error {
		s.openRows(ctx, rows)
		return take(rows)
	}
}

// slowKeys are keys whose key server took long to fail.
type slowKeys struct {
	mu   sync.Mutex
	last map[string]slowKey
}

type slowKey struct {
	until time.Duration
	err   error
}

const (
	slowFailure = time.Second // an Open that took longer has waited for a key server
	slowPause   = 5 * time.Second
	maxSlow     = 64
)

// recent returns a recent error of a key, or nil.
func (k *slowKeys) recent(provider, name string, now time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.last[provider+":"+name]; ok && now < s.until {
		return s.err
	}
	return nil
}

func (k *slowKeys) failed(provider, name string, now time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil || len(k.last) >= maxSlow {
		k.last = make(map[string]slowKey)
	}
	k.last[provider+":"+name] = slowKey{until: now + slowPause, err: fmt.Errorf("not tried again so soon: %w", err)}
}
