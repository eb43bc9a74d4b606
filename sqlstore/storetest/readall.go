package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// readAll compares a full read with pages, at revisions
// before and after changes of all kinds.
func readAll(t *testing.T, db Database) {
	d := db.Open(t)
	s := sqlstore.New(d, sqlstore.Config{})
	const n = 700 // of some pieces, by count and by size
	batch := make([]sqlstore.Txn, n)
	for i := range batch {
		k := key([]string{"pods", "nodes"}[i%2], fmt.Sprint("n", i%3), fmt.Sprintf("o%04d", i*389%n))
		batch[i] = create(k, strings.Repeat(fmt.Sprint(i, " "), 1+i%500))
	}
	batch[5].Ops[0].Value = bytes.Repeat([]byte("large"), 100<<10)
	batch[6].Ops[0].Value = nil
	apply(t, d, batch...)
	for i := range 60 {
		k := batch[i].Ops[0].Key
		if i%3 == 0 {
			must(t, d, remove(k, int64(i+1), "gone"))
			must(t, d, create(k, "again"))
		} else {
			must(t, d, update(k, int64(i+1), "new"))
		}
	}
	for _, revision := range []int64{1, 300, n, n + 1, n + 2, n + 30, n + 80} {
		want := scanAll(t, d, sqlstore.ScanRequest{Limit: 1000, Revision: revision})
		for i := range want {
			r := &want[i]
			want[i] = sqlstore.Row{Key: r.Key, Revision: r.Revision, Created: r.Created, Value: r.Value}
		}
		got := whole(t, s, revision)
		for i := range got {
			r := &got[i]
			got[i] = sqlstore.Row{Key: r.Key, Revision: r.Revision, Created: r.Created, Value: r.Value}
		}
		wantRows(t, got, want)
	}
	if _, err := d.Trim(t.Context(), 10, 1000); err != nil {
		t.Fatal(err)
	}
	keep := func([]sqlstore.Row) error { return nil }
	wantErr(t, s.ReadAll(t.Context(), 9, keep), &sqlstore.CompactedError{Revision: 9, Floor: 10})
	wantErr(t, s.ReadAll(t.Context(), n+81, keep), &sqlstore.FutureError{Revision: n + 81, Head: n + 80})
	enough := errors.New("enough")
	wantErr(t, s.ReadAll(t.Context(), n, func([]sqlstore.Row) error { return enough }), enough)
	ctx, cancel := context.WithCancel(t.Context())
	wantErr(t, s.ReadAll(ctx, n, func([]sqlstore.Row) error { cancel(); return ctx.Err() }), context.Canceled)
	if got := whole(t, s, n+80); len(got) != n {
		t.Fatalf("after readings that were given up one has %d rows", len(got))
	}
}

// whole has all rows that ReadAll lends, in key order.
func whole(t testing.TB, s *sqlstore.Store, revision int64) (all []sqlstore.Row) {
	t.Helper()
	var mu sync.Mutex
	err := s.ReadAll(t.Context(), revision, func(rows []sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		if len(rows) == 0 {
			return errors.New("a piece is empty")
		}
		for _, r := range rows {
			lent := r.Value
			r.Value = bytes.Clone(lent)
			all = append(all, r)
			clear(lent)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("reading all at %d: %v", revision, err)
	}
	slices.SortFunc(all, func(a, b sqlstore.Row) int { return a.Key.Compare(b.Key) })
	return all
}
