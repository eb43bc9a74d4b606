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

// Values are encrypted by who writes them, before the group commit: a key server that is
// slow delays its own writers and no others. They are decrypted by who reads them, where
// rows leave the driver. This is done in Store and not in a Driver around the driver, for
// three reasons: the feed shows own commits from the plain values that it has in memory;
// who expires a row writes its stored bytes back without a key; and backups and commands
// that work on drivers see what lies in the table.
//
// Who may cause what: a write costs one Seal of the user's own goroutine, a write of the
// same value one read of a row and one Open. Opening happens once for each row that this
// server did not write; what fails slowly is not tried again for a while (slowKeys), so
// that rows under a key that is away cost the others a bounded time.

// opened is a value as it was before it was encrypted, or why that is not known.
type opened struct {
	value []byte
	err   error
}

// show puts the plain value of an operation into a row that has it as it is stored.
func (w *write) show(i int, row *Row) {
	if w.plain != nil {
		row.Value, row.Unopened = w.plain[i].value, w.plain[i].err
	}
}

// sealable says whether rows of a resource may be encrypted. The server's own rows hold
// names alone, and are compared as they lie in the table.
func sealable(key *Key) bool { return !strings.HasPrefix(key.Resource, "~") }

// seal encrypts the values of a write. Errors: SealError, and those of ctx.
func (s *Store) seal(ctx context.Context, w *write) error {
	if s.cfg.Sealer == nil {
		return nil
	}
	var ops []Op // made when a value differs from what is stored
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

// sealOne is what an operation stores, and what the sink is shown of it.
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
	// What goes needs no key: the last state is then the one that lies in the table.
	var sealing *SealError
	if op.Verb == Delete && errors.As(err, &sealing) {
		row, e := s.driver.Read(ctx, op.Key, 0)
		var gone *NotFoundError
		switch {
		case e == nil && row.Revision == op.Expect:
			return row.Value, plain, nil
		case e == nil: // the delete is lost, with or without a key
			return nil, plain, &ConflictError{Key: op.Key, Expect: op.Expect, Current: row}
		case errors.As(e, &gone):
			return nil, plain, gone
		}
	}
	return nil, plain, err
}

// same says that two values are the same memory, as they are where nothing was encrypted.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Sealable says why a value of a key could not be encrypted now; nil: it could.
// Errors: SealError, those of ctx.
func (s *Store) Sealable(ctx context.Context, key Key) error {
	if s.cfg.Sealer == nil || !sealable(&key) {
		return nil
	}
	_, err := s.cfg.Sealer.Seal(ctx, key, nil)
	return err
}

// Sealed says that values may be encrypted here.
func (s *Store) Sealed() bool { return s.cfg.Sealer != nil }

// Stale says of a live row, whose value is to be written once more, that the bytes in the
// table would be others: it was encrypted by another provider or key, or cannot be opened
// any more. It reads the row, unless nothing of the resource is encrypted here.
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

// Open gives the value of stored bytes of a key, as for a row that could not be opened
// when it was read. Errors: UnsealError, those of ctx.
func (s *Store) Open(ctx context.Context, key Key, stored []byte) ([]byte, error) {
	if s.cfg.Sealer == nil || !sealable(&key) {
		return stored, nil
	}
	plain, _, err := s.open(ctx, key, stored)
	return plain, err
}

// open is Sealer.Open, but for keys that lately took long to fail.
func (s *Store) open(ctx context.Context, key Key, stored []byte) (plain []byte, stale bool, err error) {
	provider, name, _, sealed := SealedBy(stored)
	if !sealed {
		return s.cfg.Sealer.Open(ctx, key, stored)
	}
	began := s.cfg.Elapsed()
	if cause := s.slow.lately(provider, name, began); cause != nil {
		return nil, false, &UnsealError{Key: key, Provider: provider, KeyName: name, Err: cause}
	}
	if plain, stale, err = s.cfg.Sealer.Open(ctx, key, stored); err == nil {
		return plain, stale, nil
	}
	var unseal *UnsealError
	if !errors.As(err, &unseal) { // the end of ctx, which says nothing of the value
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
	s.openAll(ctx, all, s.calls)
}

// atOnce is how many values are opened at once whose provider may ask a key server for each
// of them.
const atOnce = 16

// openAll opens rows: one after another, but those that may cost a call each, which are
// opened several at once. It waits for all.
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

// openInTurn is openRow with a place among those of all pages: who waits at the plugin
// instead loses of the time that a call may take. The feed has places of its own, so that
// those who read much do not make it late.
func (s *Store) openInTurn(ctx context.Context, row *Row, places chan struct{}) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done(): // which openRow then says
	}
	s.openRow(ctx, row)
}

// oneCallEach begins values whose data key is their own.
var oneCallEach = []byte(SealedPrefix + "kmsv1:")

// openChanges opens what is not known to be open already.
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

// feedOpens is how long the feed waits for keys of one page of changes. What was not opened
// by then is shown as such, and tried again by others.
const feedOpens = 3 * time.Second

// openFed is openChanges for the feed, for which all servers' readers wait.
func (f *feed) openFed(ctx context.Context, changes []Change, own []bool) {
	if f.cfg.Sealer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, feedOpens)
	defer cancel()
	f.openChanges(ctx, changes, own, f.fed)
}

// opening opens rows before they are taken.
func (s *Store) opening(ctx context.Context, take func([]Row) error) func([]Row) error {
	if s.cfg.Sealer == nil {
		return take
	}
	return func(rows []Row) error {
		s.openRows(ctx, rows)
		return take(rows)
	}
}

// slowKeys are keys of key servers that took long to say no.
type slowKeys struct {
	mu   sync.Mutex
	last map[string]slowKey
}

type slowKey struct {
	until time.Duration
	err   error
}

const (
	slowFailure = time.Second // an Open that took longer was waiting for somebody
	slowPause   = 5 * time.Second
	mostSlow    = 64
)

// lately is why a key cannot be used now, or nil.
func (k *slowKeys) lately(provider, name string, now time.Duration) error {
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
	if k.last == nil || len(k.last) >= mostSlow {
		k.last = make(map[string]slowKey)
	}
	k.last[provider+":"+name] = slowKey{until: now + slowPause, err: fmt.Errorf("not tried again so soon: %w", err)}
}
