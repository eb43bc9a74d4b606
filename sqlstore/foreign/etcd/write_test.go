package etcd_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
)

// entries are n keys whose revisions lie in another order than they do.
func entries(n int, bytesEach int) []foreign.Entry {
	r := rand.New(rand.NewPCG(1, 2))
	order := r.Perm(n)
	out := make([]foreign.Entry, n)
	for i := range out {
		mod := int64(order[i]*2 + 3)
		out[i] = foreign.Entry{Key: fmt.Sprintf("/registry/pods/ns/p%06d", i), Value: bytes.Repeat([]byte{byte(i), 0}, bytesEach/2), CreateRevision: mod - int64(i%3), ModRevision: mod}
		if i%10 == 0 {
			out[i].ExpiresAt = noon.Add(time.Duration(i%7+1) * time.Minute)
		}
	}
	return out
}

func fill(t testing.TB, path string, at int64, entries []foreign.Entry) {
	t.Helper()
	s, err := etcd.CreateSnapshot(path, noon)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abort()
	for _, e := range entries {
		if err := s.Put(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(path); len(left) > 0 {
		t.Error("the file is there before Commit")
	}
	if err := s.Commit(t.Context(), at); err != nil {
		t.Fatal(err)
	}
}

func onlyFile(t testing.TB, path string, there bool) {
	t.Helper()
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 1 || (len(left) == 1) != there {
		t.Errorf("beside %s: %v, %v", path, left, err)
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	want := entries(5000, 8_000) // in several batches
	path := filepath.Join(t.TempDir(), "s.db")
	fill(t, path, 20_000, want)
	onlyFile(t, path, true)
	got, at, err := all(t, path, etcd.SnapshotOptions{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	if at != 20_000 {
		t.Errorf("revision %d", at)
	}
	if len(got) != len(want) {
		t.Fatalf("%d keys of %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Fatalf("%s at %d until %s became %s at %d until %s", want[i].Key, want[i].ModRevision, want[i].ExpiresAt, got[i].Key, got[i].ModRevision, got[i].ExpiresAt)
		}
	}
}

func TestSnapshotOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	fill(t, path, 7, nil)
	if got, at, err := all(t, path, etcd.SnapshotOptions{}); err != nil || at != 7 || len(got) != 0 {
		t.Errorf("%v at %d: %v", got, at, err)
	}
}

func TestSinkRefusesWhatNoEtcdHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := etcd.CreateSnapshot(path, noon)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, created, mod int64, message string) {
		t.Helper()
		err := s.Put(t.Context(), foreign.Entry{Key: key, Value: []byte("v"), CreateRevision: created, ModRevision: mod})
		if message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), message)) {
			t.Errorf("%q: %v, want %q in it", key, err, message)
		}
	}
	put("/b", 4, 4, "")
	put("/c", 0, 5, "revision")
	put("/c", 6, 5, "revision")
	put("", 5, 5, "is empty")
	put("/"+strings.Repeat("k", foreign.MaxKey), 5, 5, "at most")
	put("/c", 4, 4, "") // of one transaction with /b
	if err := s.Commit(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "below 4") {
		t.Errorf("committed below a key: %v", err)
	}
	if err := s.Commit(t.Context(), 9); err == nil {
		t.Error("committed after a failure")
	}
	onlyFile(t, path, false)
}

func TestAbortLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := etcd.CreateSnapshot(path, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := s.Abort(); err != nil {
		t.Error(err)
	}
	onlyFile(t, path, false)
	if _, err := etcd.CreateSnapshot(filepath.Join(t.TempDir(), "none", "s.db"), noon); err == nil || !strings.Contains(err.Error(), "s.db") {
		t.Errorf("in no folder: %v", err)
	}
}
