package storetest

import (
	"context"
	"slices"

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

// Pack implements sqlstore.Driver: it deletes what is not kept, and moves nothing.
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
