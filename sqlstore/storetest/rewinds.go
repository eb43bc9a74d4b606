package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// Rewound sets a database back to a revision below two servers, again and again: without writes, and with a
// write at the same time. Each then has the state of the table, and no revision that a sink has seen is used
// again. For drivers that are Returning.
func Rewound(t *testing.T, db Database, back func(to int64)) {
	one, two := db.Open(t), db.Open(t)
	s1, m1 := mirrored(t, one, sqlstore.Config{})
	s2, m2 := mirrored(t, two, sqlstore.Config{})
	write := func(s *sqlstore.Store, name string) int64 {
		t.Helper()
		out, err := s.Write(t.Context(), create(pod(name), name).Ops...)
		if err != nil {
			t.Fatal(err)
		}
		return out.Revisions[0]
	}
	for round, way := range []string{"looks", "writes"} {
		kept := write(s1, fmt.Sprintf("kept%d", round))
		var last int64
		for i := range 9 {
			last = write(s1, fmt.Sprintf("lost%d-%d", round, i))
		}
		waitFor(t, "both sinks have all", func() bool { return s1.Applied() == last && s2.Applied() == last })
		back(kept)
		if way == "writes" {
			if next := write(s2, fmt.Sprintf("next%d", round)); next <= last {
				t.Errorf("revision %d was shown, and is given again", next)
			}
		} else if _, err := s1.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "both sinks are loaded anew", func() bool {
			m1.mu.Lock()
			defer m1.mu.Unlock()
			m2.mu.Lock()
			defer m2.mu.Unlock()
			return m1.reloads > round && m2.reloads > round && !s1.Rewound() && !s2.Rewound()
		})
		b, err := one.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "both sinks have the head", func() bool { return s1.Applied() >= b.Head && s2.Applied() >= b.Head })
		m1.equals(t, one)
		m2.equals(t, two)
		for i, s := range []*sqlstore.Store{s1, s2} {
			if r := s.Rewinds(); r.Count != int64(round)+1 || r.Lost != int64(round+1)*9 {
				t.Errorf("server %d noticed %+v, after %d times", i+1, r, round+1)
			}
			var compacted *sqlstore.CompactedError
			if _, err := s.Changes(t.Context(), last, 1, false); !errors.As(err, &compacted) {
				t.Errorf("a watch from revision %d, which is lost, goes on: %v", last, err)
			}
		}
		CheckTable(t, one)
	}
}

// skipped leaves revisions out, for drivers that can.
func skipped(t *testing.T, db Database) {
	d := db.Open(t)
	last := must(t, d, create(pod("a"), "a"))
	s, m := mirrored(t, db.Open(t), sqlstore.Config{})
	waitFor(t, "the sink has all", func() bool { return s.Applied() == last })
	from, to, err := d.SkipRevisions(t.Context(), 1000)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}

	if err != nil || from != last || to != last+1000 {
		t.Fatalf("left out %d to %d, %v", from, to, err)
	}
	if next := must(t, d, create(pod("c"), "c")); next != to+1 {
		t.Errorf("the next revision is %d, want %d", next, to+1)
	}
	waitFor(t, "the sink has the next", func() bool { return s.Applied() == to+1 })
	m.equals(t, d)
	if from, to, err = d.SkipRevisions(t.Context(), 0); err != nil || to < from+sqlstore.RevisionGap(0) {
		t.Errorf("without a number %d to %d are left out, %v", from, to, err)
	}
	CheckTable(t, d)
}

// skippedPast leaves revisions out of kept history, for drivers that can. Earlier and later history can be
// read. A client may have seen another state at a revision between, which a database that was set back has
// lost.
func skippedPast(t *testing.T, db Database) {
	d := db.Open(t) // without a server, whose compaction would delete the history
	last := must(t, d, create(pod("a"), "a"))
	retain(t, sqlstore.Floors{Log: last, Past: map[string]int64{"": 0}}, d)
	from, to, err := d.SkipRevisions(t.Context(), 1000)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	must(t, d, create(pod("c"), "c"))
	read := func(revision int64) error {
		_, err := d.Scan(t.Context(), sqlstore.ScanRequest{Resource: "pods", Revision: revision, Limit: 10})
		return err
	}
	for range 2 {
		for _, revision := range []int64{from + 1, to - 1} {
			wantErr(t, read(revision), &sqlstore.CompactedError{Revision: revision, Floor: to})
		}
		for _, revision := range []int64{from, to, to + 1} {
			if err := read(revision); err != nil {
				t.Errorf("reading revision %d, with %d to %d left out: %v", revision, from, to, err)
			}
		}
		retain(t, sqlstore.Floors{Log: to + 1, Past: map[string]int64{"": 0}}, d) // which keeps that
	}
	CheckTable(t, d)
}
