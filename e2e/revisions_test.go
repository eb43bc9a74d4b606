package e2e

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestLargeRevisions: a cluster has counted to 2^53, after 28,000 years of 10,000 writes a second. Floating-point numbers lose units from 2^53 on; the server
// counts on, distinguishes revisions that differ by one, and pages, watches, and starts again from its cache file.
func TestLargeRevisions(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	for name, c := range map[string]struct{ driver, url, column string }{
		"sqlite":   {"sqlite", "sqlite:" + filepath.Join(t.TempDir(), "rowlock.db"), "value"},
		"postgres": {"pgx", createDB(t, pg, "large"), "number"},
	} {
		t.Run(name, func(t *testing.T) {
			runBinary(t, "store", "migrate", "--store", c.url)
			at := c.url
			if c.driver == "sqlite" {
				at = at[len("sqlite:"):]
			}
			db, err := sql.Open(c.driver, at)
			if err != nil {
				t.Fatal(err)
			}
			const begin = 1<<53 - 30 // what the server writes for itself goes beyond
			_, err = db.Exec(fmt.Sprintf("UPDATE kv_meta SET %s = %d WHERE key IN ('revision', 'floor')", c.column, begin))
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			s := harness.StartT(t, harness.Options{Store: c.url})
			largeRevisions(t, newAPI(t, s))
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			wantClean(t, c.url)
			again := harness.StartT(t, s.Options())
			if n := len(pagesOf(t, newAPI(t, again), 1000)); n != 20 {
				t.Errorf("a server that starts again shows %d objects", n)
			}
		})
	}
}

// pagesOf returns the revisions of the test's objects by pages.
func pagesOf(t *testing.T, a *api, limit int) (revisions []int64) {
	t.Helper()
	for token := ""; ; {
		var page metav1.PartialObjectMetadataList
		path := fmt.Sprintf("%s?labelSelector=large&limit=%d&continue=%s", configMaps, limit, token)
		if err := json.Unmarshal(want(t, a, http.StatusOK, http.MethodGet, path, "", ""), &page); err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			revisions = append(revisions, revisionOf(t, &page.Items[i]))
		}
		if token = page.Continue; token == "" {
			return revisions
		}
	}
}

func revisionOf(t *testing.T, o metav1.Object) int64 {
	t.Helper()
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil || n < 1<<53-30 {
		t.Fatalf("the resource version is %q", o.GetResourceVersion())
	}
	return n
}

func largeRevisions(t *testing.T, a *api) {
	write := func(method, path, body string) int64 {
		t.Helper()
		code, kind := http.StatusCreated, "application/json"
		if method == http.MethodPut {
			code = http.StatusOK
		}
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(want(t, a, code, method, path, kind, body), &o); err != nil {
			t.Fatal(err)
		}
		return revisionOf(t, &o)
	}
	var made []int64
	for i := range 20 {
		made = append(made, write(http.MethodPost, configMaps, fmt.Sprintf(`{"metadata":{"name":"large-%02d","labels":{"large":""}}}`, i)))
	}
	if made[0] <= 1<<53 || !slices.IsSorted(made) {
		t.Fatalf("the revisions are %v", made)
	}
	if got := pagesOf(t, a, 7); !slices.Equal(got, made) {
		t.Errorf("the pages have the revisions %v, want %v", got, made)
	}
	// An update from the revision before or behind is a conflict, one from its own is none.
	last := made[19]
	body := func(rv int64) string {
		return fmt.Sprintf(`{"metadata":{"name":"large-19","labels":{"large":""},"resourceVersion":"%d"},"data":{"a":"b"}}`, rv)
	}
	want(t, a, http.StatusConflict, http.MethodPut, configMaps+"/large-19", "application/json", body(last-1))
	changed := write(http.MethodPut, configMaps+"/large-19", body(last))
	// The earlier state is there exactly, and a watch begins exactly after a revision.
	var then metav1.PartialObjectMetadataList
	path := fmt.Sprintf("%s?labelSelector=large&resourceVersionMatch=Exact&resourceVersion=%d", configMaps, last-1)
	if err := json.Unmarshal(want(t, a, http.StatusOK, http.MethodGet, path, "", ""), &then); err != nil || then.ResourceVersion != strconv.FormatInt(last-1, 10) {
		t.Errorf("a list at %d is of %s, %v", last-1, then.ResourceVersion, err)
	}
	for i := range then.Items {
		if revisionOf(t, &then.Items[i]) >= last {
			t.Errorf("a list at %d shows revision %s", last-1, then.Items[i].ResourceVersion)
		}
	}
	events := want(t, a, http.StatusOK, http.MethodGet, fmt.Sprintf("%s?watch=1&timeoutSeconds=1&labelSelector=large&resourceVersion=%d", configMaps, made[17]), "", "")
	var seen []int64
	for lines := bufio.NewScanner(bytes.NewReader(events)); lines.Scan(); {
		var e struct {
			Object metav1.PartialObjectMetadata `json:"object"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, revisionOf(t, &e.Object))
	}
	if !slices.Equal(seen, []int64{made[18], last, changed}) {
		t.Errorf("a watch from %d sees %v, want %v", made[17], seen, []int64{made[18], last, changed})
	}
}
