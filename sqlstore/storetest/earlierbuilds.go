package storetest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// EarlierBuildFile reads a database that an earlier build wrote. e2e/testdata/eras/README.md lists them.
func EarlierBuildFile(t testing.TB, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// EarlierBuild holds a driver to its promises on a database of an earlier build, which the driver has migrated. rows is how many live
// rows that build left, head its newest revision.
func EarlierBuild(t *testing.T, d sqlstore.Driver, rows int, head int64) {
	t.Helper()
	b, err := d.Bounds(t.Context())
	if err != nil || b.Head != head {
		t.Fatalf("the bounds are %+v, %v, want the newest revision %d", b, err, head)
	}
	if live := scanAll(t, d, sqlstore.ScanRequest{Limit: 1000}); len(live) != rows {
		t.Errorf("%d rows are live, want %d", len(live), rows)
	}
	CheckTable(t, d)
	f, err := d.Floors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state := func(at int64) (list []string) {
		for _, row := range scanAll(t, d, sqlstore.ScanRequest{Limit: 1000, Revision: at}) {
			list = append(list, fmt.Sprintf("%s %d %d %s %s", row.Key, row.Revision, row.Created, row.WrittenAt.UTC(), row.Value))
		}
		return list
	}
	states := map[int64][]string{}
	for at := max(1, f.Lowest()); at <= b.Head; at += 5 {
		states[at] = state(at)
	}
	must(t, d, create(pod("of-today"), `{"kind":"Pod"}`))
	retain(t, sqlstore.Floors{Log: head + 1, Past: map[string]int64{"": f.Lowest()}}, d)
	packAll(t, d, 20)
	for at, want := range states {
		if diff := cmp.Diff(want, state(at)); diff != "" {
			t.Errorf("packed, the state at %d is another (-before +after):\n%s", at, diff)
		}
	}
	report, err := upkeep.Verify(t.Context(), d, nil)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
}
