package sqlstore

import (
	"errors"
	"sync"
	"time"
)

// Keeper is a Driver that can tell without writing that what it wrote would be lost.
type Keeper interface {
	// Kept is ErrGone if the database is not where it was opened, or a sync of it failed.
	Kept() error
}

// refusal is why the database takes no writes, as of the last one.
type refusal struct {
	mu   sync.Mutex
	err  error
	last time.Duration // when that was last so
}

// refusedFor is how long a refusal counts after the last write that met it: where
// nobody writes, nobody finds out that there is room again.
const refusedFor = 30 * time.Second

// refusing says that an error is one by which a database takes no writes at all, while
// it can be read.
func refusing(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrGone)
}

// tell remembers what became of a write, and logs where that changes.
func (s *Store) tell(err error) {
	r := &s.refusal
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case refusing(err):
		if r.err == nil {
			s.cfg.Log.Error("the store takes no writes", "error", err)
		}
		r.err, r.last = err, s.cfg.Elapsed()
	case err == nil && r.err != nil:
		s.cfg.Log.Info("the store takes writes again")
		r.err = nil
	}
}

// Writable says why writes are refused; nil as far as is known that they are not.
func (s *Store) Writable() error {
	if s.keeper != nil {
		if err := s.keeper.Kept(); err != nil {
			s.tell(err)
			return err
		}
	}
	r := &s.refusal
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || errors.Is(r.err, ErrGone) || s.cfg.Elapsed()-r.last > refusedFor {
		return nil
	}
	return r.err
}
