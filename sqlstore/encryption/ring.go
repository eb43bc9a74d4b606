package encryption

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
)

// sealer is a provider with one key. Its values begin with head.
type sealer interface {
	Seal(ctx context.Context, head []byte, row sqlstore.Key, plain []byte) ([]byte, error)
	Open(ctx context.Context, stored []byte, head int, row sqlstore.Key) (plain []byte, stale bool, err error)
}

// local is a sealer whose secret is in the file.
type local struct{ key keys.Key }

func (l local) Seal(_ context.Context, head []byte, row sqlstore.Key, plain []byte) ([]byte, error) {
	out := append(make([]byte, 0, len(head)+len(plain)+l.key.Overhead()), head...)
	return l.key.Seal(out, plain, bind(head, row)), nil
}

func (l local) Open(_ context.Context, stored []byte, head int, row sqlstore.Key) ([]byte, bool, error) {
	plain, err := l.key.Open(stored[head:], bind(stored[:head], row))
	return plain, false, err
}

// bind returns the place of a value: its row, and the key that is named before it.
func bind(head []byte, row sqlstore.Key) []byte {
	return keys.Bound(append(make([]byte, 0, len(head)+96), head...), row.Resource, row.Namespace, row.Name)
}

// slot is one key of one provider, in the order of the file.
type slot struct {
	provider, name string
	head           []byte // nil: values are stored as they are
	sealer         sealer // nil likewise
}

func (s *slot) prefix(w direction) string {
	switch {
	case s.head != nil:
		return sqlstore.SealedPrefix + s.provider + ":"
	case w == fromStorage:
		return "identity"
	}
	return ""
}

// ring encrypts and decrypts the values of one resource: the first slot encrypts, and the one that encrypted
// a value decrypts it.
type ring struct {
	slots   []slot
	sealing *meter
	opening []*meter // of each slot
	unknown *meter
}

var errUnmatched = errors.New("no matching prefix found")

func newRing(resource string, slots []slot, m *metrics) *ring {
	r := &ring{slots: slots, sealing: m.meter(resource, toStorage, slots[0].prefix(toStorage)).ready(), unknown: m.meter(resource, fromStorage, "unknown")}
	for i := range slots {
		r.opening = append(r.opening, m.meter(resource, fromStorage, slots[i].prefix(fromStorage)).ready())
	}
	return r
}

func (r *ring) seal(ctx context.Context, row sqlstore.Key, plain []byte) (stored []byte, err error) {
	began := time.Now()
	s := &r.slots[0]
	if s.sealer == nil {
		r.sealing.done(began, nil)
		return plain, nil
	}
	stored, err = s.sealer.Seal(ctx, s.head, row, plain)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.sealing.done(began, err)
	if err != nil {
		return nil, &sqlstore.SealError{Key: row, Provider: s.provider, KeyName: s.name, Err: err}
	}
	return stored, nil
}

func (r *ring) open(ctx context.Context, row sqlstore.Key, stored []byte) (plain []byte, stale bool, err error) {
	began := time.Now()
	provider, name, head, sealed := sqlstore.SealedBy(stored)
	var why error
	for i := range r.slots {
		s := &r.slots[i]
		if sealed != (s.sealer != nil) || sealed && !bytes.Equal(s.head, stored[:head]) {
			continue
		}
		if !sealed {
			r.opening[i].done(began, nil)
			return stored, i > 0, nil
		}
		plain, stale, err := s.sealer.Open(ctx, stored, head, row)
		if err != nil && ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		r.opening[i].done(began, err)
		if err == nil {
			return plain, stale || i > 0, nil
		}
		if why == nil || errors.Is(err, sqlstore.ErrKeyUnavailable) { // two providers may name their keys alike
			why = err
		}
	}
	if why == nil {
		why = errUnmatched
		r.unknown.done(began, why)
	}
	return nil, false, &sqlstore.UnsealError{Key: row, Provider: provider, KeyName: name, Err: why}
}
