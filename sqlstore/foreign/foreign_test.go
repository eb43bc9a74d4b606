package foreign_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/foreigntest"
)

func TestCheckNamesKeyAndBound(t *testing.T) {
	long := strings.Repeat("k", foreign.MaxKey+1)
	for _, c := range []struct {
		key      string
		bytes    int64
		contains string
	}{
		{"/registry/pods/a/b", 10, ""},
		{"", 10, "is empty"},
		{long, 10, "at most 4096"},
		{"/registry/pods/a/b", foreign.MaxValue + 1, "at most 33554432"},
	} {
		err := foreign.Check(c.key, c.bytes)
		if c.contains == "" {
			if err != nil {
				t.Errorf("%q: %v", c.key, err)
			}
			continue
		}
		var keyed *foreign.KeyError
		if !errors.As(err, &keyed) || !strings.Contains(err.Error(), c.contains) || len(err.Error()) > 600 {
			t.Errorf("%q: %v, want a KeyError with %q", foreign.Shown(c.key), err, c.contains)
		}
	}
}

func TestMemoryShowsNothingUncommitted(t *testing.T) {
	ctx := t.Context()
	m := foreigntest.New(9)
	if err := m.Put(ctx, foreign.Entry{Key: "/b", Value: []byte("2"), ModRevision: 2}); err != nil {
		t.Fatal(err)
	}
	if err := m.Put(ctx, foreign.Entry{Key: "/b", ModRevision: 3}); err == nil {
		t.Error("a key was taken twice")
	}
	if err := m.Put(ctx, foreign.Entry{Key: "/a", Value: []byte("1"), ModRevision: 4}); err != nil {
		t.Fatal(err)
	}
	for e := range m.Entries(ctx) {
		t.Errorf("%q is there before Commit", e.Key)
	}
	if err := m.Commit(ctx, 1); err == nil {
		t.Error("committed below the revision of a key")
	}
	if err := m.Commit(ctx, 12); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for e, err := range m.Entries(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Key+"="+string(e.Value))
	}
	if strings.Join(seen, " ") != "/a=1 /b=2" || m.Revision() != 12 {
		t.Errorf("%v at %d", seen, m.Revision())
	}
}
