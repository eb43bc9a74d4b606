package e2e

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestStoreMetrics compares the metrics of the store with the operations of the test, on both databases.
func TestStoreMetrics(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	for _, db := range []struct {
		name, store string
		more        []string // metrics of this database alone
	}{
		{"sqlite", "", nil},
		{"postgres", newDatabase(t, pg), []string{`rowlock_store_connections{state="idle"}`, "rowlock_store_connections_max"}},
	} {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, harness.StartT(t, harness.Options{Store: db.store}))
			want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"m"}}`)
			want(t, a, 200, http.MethodDelete, configMaps+"/m", "", "")
			want(t, a, 200, http.MethodGet, configMaps, "", "")
			text := want(t, a, 200, http.MethodGet, "/metrics", "", "")
			for name, least := range map[string]float64{
				`rowlock_store_commit_duration_seconds_count{result="ok"}`: 2,
				"rowlock_store_commit_writes_sum":                          2,
				"rowlock_store_operations_total":                           2,
				"rowlock_store_revision":                                   3,
				`rowlock_store_rows{state="live"}`:                         1,
				`rowlock_store_rows{state="history"}`:                      1,
				"rowlock_store_bytes":                                      4096,
				"rowlock_store_lag_revisions":                              0,
				"rowlock_store_lag_seconds":                                0,
				"rowlock_store_compacted_revision":                         0,
				"rowlock_store_feed_reconnects_total":                      0,
				"rowlock_store_feed_reloads_total":                         0,
			} {
				if v, ok := valueOf(text, name); !ok || v < least {
					t.Errorf("%s is %v (there: %v), want at least %v", name, v, ok, least)
				}
			}
			for _, name := range db.more {
				if _, ok := valueOf(text, name); !ok {
					t.Errorf("there is no %s", name)
				}
			}
			queries := regexp.MustCompile(`(?m)^rowlock_store_query_duration_seconds_count\{query="\w+"\} [1-9]`)
			if !queries.Match(text) {
				t.Error("no call of the database was counted")
			}
		})
	}
}

// valueOf returns the value of a sample in a scrape.
func valueOf(text []byte, name string) (float64, bool) {
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	return v, err == nil
}
