package storetest

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

func (m *Memory) kept() sqlstore.Floors {
	if m.floors.Log != m.bounds.Floor {
		return sqlstore.Floors{Log: m.bounds.Floor}
	}
	return m.floors
}

// Floors implements sqlstore.Driver.
func (m *Memory) Floors(ctx context.Context) (sqlstore.Floors, error) {
	if err := m.enter(ctx); err != nil {
		return sqlstore.Floors{}, err
	}
	defer m.mu.Unlock()
	return m.kept(), nil
}

// Retain implements sqlstore.Driver.
func (m *Memory) Retain(ctx context.Context, to sqlstore.Floors) (sqlstore.Floors, error) {
	if err := m.enter(ctx); err != nil {
		return sqlstore.Floors{}, err
	}
	defer m.mu.Unlock()
	m.floors = m.kept().Raised(to, m.bounds.Head)
	m.bounds.Floor = m.floors.Log
	return m.floors, nil
}

// Pack implements sqlstore.Driver: it deletes old rows, and moves nothing.
func (m *Memory) Pack(ctx context.Context, _ sqlstore.Cursor, _ int) (sqlstore.Packed, error) {
	if err := m.enter(ctx); err != nil {
		return sqlstore.Packed{}, err
	}
	defer m.mu.Unlock()
	floors, before := m.kept(), len(m.rows)
	m.rows = slices.DeleteFunc(m.rows, func(r sqlstore.Row) bool { return r.Superseded != 0 && r.Superseded <= floors.Of(r.Key.Resource) })
	return sqlstore.Packed{Done: true, Deleted: before - len(m.rows)}, nil
}

// Forget implements sqlstore.Driver.
func (m *Memory) Forget(context.Context, int) (int, error) { return 0, nil }

// Older implements sqlstore.Driver.
func (m *Memory) Older(ctx context.Context, upTo int64, after sqlstore.Cursor, limit int) (rows []sqlstore.Row, err error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	floors := m.kept()
	for _, r := range m.rows {
		c := r.Key.Compare(after.Key)
		if r.Superseded != 0 && r.Superseded <= upTo && r.Superseded > floors.Of(r.Key.Resource) && (c > 0 || c == 0 && r.Revision > after.Revision) {
			rows = append(rows, clone(r))
		}
	}
	slices.SortStableFunc(rows, func(a, b sqlstore.Row) int { return a.Key.Compare(b.Key) })
	return rows[:min(limit, len(rows))], nil
}

func (m *Memory) Past(ctx context.Context, k sqlstore.Key, before int64, limit int) (rows []sqlstore.Row, err error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, r := range slices.Backward(m.rows) {
		kept := r.Superseded == 0 || r.Superseded > m.kept().Of(k.Resource)
		if r.Key == k && kept && r.Revision < sqlstore.PastFrom(before) && len(rows) < limit {
			rows = append(rows, clone(r))
		}
	}
	return rows, nil
}

func (m *Memory) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if after < m.bounds.Floor {
		return nil, &sqlstore.CompactedError{Revision: after, Floor: m.bounds.Floor}
	}
	var log []sqlstore.Change
	size := 0
	for _, r := range m.rows {
		if r.Revision <= after || len(log) == limit || size >= sqlstore.ChangesBytes {
			continue
		}
		c := sqlstore.Change{Row: clone(r)}
		for _, p := range m.rows {
			if p.Superseded == r.Revision && p.Revision < r.Revision {
				c.PrevRevision = p.Revision
				if previous {
					c.PrevValue = bytes.Clone(p.Value)
				}
			}
		}
		log, size = append(log, c), size+c.Bytes()
	}
	return log, nil
}

func (m *Memory) Trim(ctx context.Context, to int64, limit int) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	if m.kept().Past != nil && min(to, m.bounds.Head) <= m.bounds.Floor {
		return 0, nil
	}
	if floor := min(to, m.bounds.Head); floor > m.bounds.Floor {
		m.bounds.Floor = floor
		if i := slices.IndexFunc(m.rows, func(r sqlstore.Row) bool { return r.Revision == floor }); i >= 0 {
			m.mark = m.rows[i]
		}
	}
	deleted := 0
	m.rows = slices.DeleteFunc(m.rows, func(r sqlstore.Row) bool {
		if r.Superseded == 0 || r.Superseded > m.bounds.Floor || deleted >= limit {
			return false
		}
		deleted++
		return true
	})
	return deleted, nil
}

func (m *Memory) LastChanges(ctx context.Context, after, upTo int64) (map[string]int64, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if after < m.bounds.Floor {
		return nil, &sqlstore.CompactedError{Revision: after, Floor: m.bounds.Floor}
	}
	last := map[string]int64{}
	for _, r := range m.rows {
		if r.Revision > after && r.Revision <= upTo {
			last[r.Key.Resource] = max(last[r.Key.Resource], r.Revision)
		}
	}
	return last, nil
}

func (m *Memory) RevisionAt(ctx context.Context, at time.Time) (int64, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	revision := m.kept().Lowest()
	for _, r := range m.rows {
		if !r.WrittenAt.After(at) {
			revision = max(revision, r.Revision)
		}
	}
	return revision, nil
}

func (m *Memory) Aged(ctx context.Context, newest, t, now time.Time) (revision int64, at time.Time, err error) {
	if err := m.enter(ctx); err != nil {
		return 0, newest, err
	}
	defer m.mu.Unlock()
	floor := m.kept().Lowest()
	revision, at = floor, newest
	for _, r := range m.rows {
		switch {
		case r.Revision <= floor || r.WrittenAt.After(now):
		case r.WrittenAt.After(t):
			return revision, at, nil
		case !r.WrittenAt.Before(at):
			revision, at = r.Revision, r.WrittenAt
		}
	}
	return revision, at, nil
}

func (m *Memory) Since(ctx context.Context, revision int64) (t time.Time, ok bool, err error) {
	if err := m.enter(ctx); err != nil {
		return t, false, err
	}
	defer m.mu.Unlock()
	if m.mark.Revision == revision {
		return m.mark.WrittenAt, true, nil
	}
	for _, r := range m.rows {
		if r.Revision >= revision && (!ok || r.WrittenAt.Before(t)) {
			t, ok = r.WrittenAt, true
		}
	}
	return t, ok, nil
}

func (m *Memory) Expired(ctx context.Context, now time.Time, limit int) ([]sqlstore.Row, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var rows []sqlstore.Row
	for _, r := range m.rows {
		if r.Superseded == 0 && !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) {
			rows = append(rows, clone(r))
		}
	}
	slices.SortStableFunc(rows, func(a, b sqlstore.Row) int { return a.ExpiresAt.Compare(b.ExpiresAt) })
	n := 0
	for bytes := 0; n < len(rows) && n < limit && bytes < sqlstore.ChangesBytes; n++ {
		bytes += len(rows[n].Value)
	}
	return rows[:n], nil
}
