// Package foreigntest has a foreign store in memory, for tests of code that reads a foreign.Source or writes a
// foreign.Sink.
package foreigntest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// Memory is a Source of its content and a Sink that fills it. It is not for concurrent use.
type Memory struct {
	At        int64           // Revision
	Held      []foreign.Entry // the result of Entries, sorted by New and Commit
	Fail      error           // if set, Entries ends with it, after everything
	Committed bool
	put       []foreign.Entry
}

var (
	_ foreign.Source = (*Memory)(nil)
	_ foreign.Sink   = (*Memory)(nil)
)

// New returns a store at revision with entries, in any order.
func New(revision int64, entries ...foreign.Entry) *Memory {
	m := &Memory{At: revision, Held: slices.Clone(entries)}
	slices.SortFunc(m.Held, func(a, b foreign.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return m
}

// Describe implements Source and Sink.
func (m *Memory) Describe() string { return "memory" }

// Revision implements Source.
func (m *Memory) Revision() int64 { return m.At }

// Entries implements Source. As the contract allows, it overwrites the bytes of a value when the next entry
// is read, which reveals callers that keep them.
func (m *Memory) Entries(ctx context.Context) iter.Seq2[foreign.Entry, error] {
	return func(yield func(foreign.Entry, error) bool) {
		for _, e := range m.Held {
			if err := ctx.Err(); err != nil {
				yield(foreign.Entry{}, err)
				return
			}
			e.Value = bytes.Clone(e.Value)
			if !yield(e, nil) {
				return
			}
			for i := range e.Value {
				e.Value[i] = 0xff
			}
		}
		if m.Fail != nil {
			yield(foreign.Entry{}, m.Fail)
		}
	}
}

// Close implements Source.
func (m *Memory) Close() error { return nil }

// Put implements Sink; it refuses keys that were put before, and empty ones.
func (m *Memory) Put(ctx context.Context, e foreign.Entry) error {
	if err := foreign.Check(e.Key, int64(len(e.Value))); err != nil {
		return err
	}
	if slices.ContainsFunc(m.put, func(other foreign.Entry) bool { return other.Key == e.Key }) {
		return &foreign.KeyError{Key: e.Key, Why: "was put before"}
	}
	e.Value = bytes.Clone(e.Value)
	m.put = append(m.put, e)
	return ctx.Err()
}

// Commit implements Sink.
func (m *Memory) Commit(ctx context.Context, revision int64) error {
	for _, e := range m.put {
		if e.ModRevision > revision {
			return &foreign.KeyError{Key: e.Key, Why: fmt.Sprintf("has revision %d, newer than %d of the whole", e.ModRevision, revision)}
		}
	}
	*m = *New(revision, m.put...)
	m.Committed = true
	return ctx.Err()
}

// Abort implements Sink.
func (m *Memory) Abort() error {
	m.put = nil
	return nil
}
