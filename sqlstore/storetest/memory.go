package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Memory is the contract in its simplest form: the model that drivers are
// compared with. It keeps every row in one slice and searches it from end to end.
type Memory struct {
	sqlstore.Simple
	*state
	closing chan struct{}
	once    sync.Once
	loops   sync.WaitGroup
}

// state is shared by the servers on one Memory.
type state struct {
	mu     sync.Mutex
	rows   []sqlstore.Row // by revision
	bounds sqlstore.Bounds
	floors sqlstore.Floors // as they were raised last, together
	mark   sqlstore.Row    // the row of the floor, which may be gone
	notes  map[string]string
	hints  map[chan struct{}]struct{}
	leads  map[string]*Memory
}

// NewMemory makes an empty model.
func NewMemory() *Memory {
	return &Memory{state: &state{hints: make(map[chan struct{}]struct{}), leads: make(map[string]*Memory), notes: make(map[string]string)}, closing: make(chan struct{})}
}

// Again returns another server's driver on the same memory.
func (m *Memory) Again() *Memory { return &Memory{state: m.state, closing: make(chan struct{})} }

func (m *Memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-m.closing:
		return sqlstore.ErrClosed
	default:
		m.mu.Lock()
		return nil
	}
}

func (m *Memory) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	if err := m.enter(ctx); err != nil {
		return sqlstore.Bounds{}, err
	}
	defer m.mu.Unlock()
	return m.bounds, nil
}

func (m *Memory) current(k sqlstore.Key) *sqlstore.Row {
	for i := range m.rows {
		if m.rows[i].Key == k && m.rows[i].Superseded == 0 {
			return &m.rows[i]
		}
	}
	return nil
}

func (m *Memory) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	now = now.UTC().Truncate(time.Microsecond)
	out := make([]sqlstore.Outcome, len(batch))
	for i, txn := range batch {
		for _, op := range txn.Ops {
			if out[i].Err = m.check(op); out[i].Err != nil {
				break
			}
		}
		if out[i].Err != nil {
			continue
		}
		out[i].WrittenAt = now
		for _, op := range txn.Ops {
			row := m.write(op, now)
			out[i].Revisions = append(out[i].Revisions, row.Revision)
			out[i].Created = append(out[i].Created, row.Created)
		}
	}
	for hint := range m.hints {
		select {
		case hint <- struct{}{}:
		default:
		}
	}
	return out, nil
}

func (m *Memory) check(op sqlstore.Op) error {
	row := m.current(op.Key)
	switch {
	case op.Verb == sqlstore.Create && row != nil:
		return &sqlstore.ExistsError{Key: op.Key, Current: clone(*row)}
	case op.Verb == sqlstore.Create:
		return nil
	case row == nil:
		return &sqlstore.NotFoundError{Key: op.Key}
	case row.Revision != op.Expect:
		return &sqlstore.ConflictError{Key: op.Key, Expect: op.Expect, Current: clone(*row)}
	}
	return nil
}

func (m *Memory) write(op sqlstore.Op, now time.Time) sqlstore.Row {
	m.bounds.Head++
	row := sqlstore.Row{Key: op.Key, Revision: m.bounds.Head, Created: m.bounds.Head, Value: bytes.Clone(op.Value), WrittenAt: now}
	if !op.ExpiresAt.IsZero() {
		row.ExpiresAt = op.ExpiresAt.UTC().Truncate(time.Microsecond)
	}
	if old := m.current(op.Key); old != nil {
		old.Superseded, row.Created = row.Revision, old.Created
	}
	if op.Verb == sqlstore.Delete {
		row.Deleted, row.Superseded, row.ExpiresAt = true, row.Revision, time.Time{}
	}
	m.rows = append(m.rows, row)
	return row
}

func clone(r sqlstore.Row) sqlstore.Row {
	r.Value = bytes.Clone(r.Value)
	return r
}

func (m *Memory) Resolve(context.Context) ([]sqlstore.Outcome, bool, error) { return nil, false, nil }

// held reports whether a row is part of the snapshot at a revision; 0 is now.
func held(r sqlstore.Row, revision int64) bool {
	if revision == 0 {
		return r.Superseded == 0
	}
	return r.Revision <= revision && (r.Superseded == 0 || r.Superseded > revision)
}

func (m *Memory) Scan(ctx context.Context, req sqlstore.ScanRequest) ([]sqlstore.Row, error) {
	if req.Limit <= 0 {
		return nil, errors.New("the limit is not positive")
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if req.Revision != 0 {
		if err := m.kept().Check(req.Resource, req.Revision, m.bounds.Head); err != nil {
			return nil, err
		}
	}
	var rows []sqlstore.Row
	for _, r := range m.rows {
		if held(r, req.Revision) && (req.Resource == "" || req.Resource == r.Key.Resource) && (req.Namespace == "" || req.Namespace == r.Key.Namespace) && r.Key.Compare(req.After) > 0 {
			rows = append(rows, clone(r))
		}
	}
	slices.SortFunc(rows, func(a, b sqlstore.Row) int { return a.Key.Compare(b.Key) })
	n, bytes := 0, 0
	for ; n < len(rows) && !req.Full(n, bytes); n++ {
		bytes += len(rows[n].Value)
	}
	return rows[:n], nil
}

func (m *Memory) Read(ctx context.Context, k sqlstore.Key, revision int64) (sqlstore.Row, error) {
	if err := m.enter(ctx); err != nil {
		return sqlstore.Row{}, err
	}
	defer m.mu.Unlock()
	if revision != 0 {
		if err := m.kept().Check(k.Resource, revision, m.bounds.Head); err != nil {
			return sqlstore.Row{}, err
		}
	}
	for _, r := range m.rows {
		if r.Key == k && held(r, revision) {
			return clone(r), nil
		}
	}
	return sqlstore.Row{}, &sqlstore.NotFoundError{Key: k}
}

func (m *Memory) Note(ctx context.Context, name string) (string, error) {
	if err := m.enter(ctx); err != nil {
		return "", err
	}
	defer m.mu.Unlock()
	return m.notes[name], nil
}

func (m *Memory) SetNote(ctx context.Context, name, was, is string) (bool, error) {
	if err := m.enter(ctx); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	if m.notes[name] != was {
		return false, nil
	}
	m.notes[name] = is
	return true, nil
}

func (m *Memory) Hints(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	m.mu.Lock()
	m.hints[hints] = struct{}{}
	m.mu.Unlock()
	m.loops.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.closing:
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.hints, hints)
		close(hints)
	})
	return hints
}

// Now implements sqlstore.Driver.
func (m *Memory) Now() time.Time { return time.Now() }

func (m *Memory) Exclusive() uint64 { return 0 }

func (m *Memory) ConcurrentTrim() bool { return false }

// ReadAll implements sqlstore.Reader.
func (m *Memory) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	return sqlstore.ReadPages(ctx, m, revision, take)
}

// Load implements sqlstore.Admin.
func (m *Memory) Load(context.Context, sqlstore.Content) error {
	return fmt.Errorf("filling a model: %w", errors.ErrUnsupported)
}

func (m *Memory) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	if err := m.enter(ctx); err != nil {
		return nil, nil, false, err
	}
	defer m.mu.Unlock()
	if m.leads[name] != nil {
		return nil, nil, false, nil
	}
	m.leads[name] = m
	var once sync.Once
	return m.closing, func() {
		once.Do(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.leads[name] == m {
				delete(m.leads, name)
			}
		})
	}, true, nil
}

func (m *Memory) Stats(ctx context.Context) (sqlstore.Stats, error) {
	if err := m.enter(ctx); err != nil {
		return sqlstore.Stats{}, err
	}
	defer m.mu.Unlock()
	s := sqlstore.Stats{Driver: "memory", SchemaVersion: 1, ClusterID: "memory", Bounds: m.bounds}
	counts := make(map[string]*sqlstore.ResourceStats)
	for i, r := range m.rows {
		if i == 0 || r.WrittenAt.Before(s.OldestWrittenAt) {
			s.OldestWrittenAt = r.WrittenAt
		}
		s.Bytes += int64(len(r.Value))
		if r.Superseded != 0 {
			s.HistoryRows++
			continue
		}
		s.LiveRows++
		c := counts[r.Key.Resource]
		if c == nil {
			c = &sqlstore.ResourceStats{Resource: r.Key.Resource}
			counts[r.Key.Resource] = c
		}
		c.Objects++
		c.Bytes += int64(len(r.Value))
	}
	for _, c := range counts {
		s.Resources = append(s.Resources, *c)
	}
	slices.SortFunc(s.Resources, func(a, b sqlstore.ResourceStats) int { return cmp.Compare(a.Resource, b.Resource) })
	return s, nil
}

func (m *Memory) Close() error {
	m.once.Do(func() {
		close(m.closing)
		m.mu.Lock()
		defer m.mu.Unlock()
		maps.DeleteFunc(m.leads, func(_ string, holder *Memory) bool { return holder == m })
	})
	m.loops.Wait()
	return nil
}
