package history_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestCompactedElsewhere: a server that does not know yet that history was deleted by another one answers that it is gone, and not that
// there was no object.
func TestCompactedElsewhere(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(d, sqlstore.Config{Retention: time.Hour, CompactEvery: time.Hour}))
			s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
			first := configmap(t, s, "POST", "1")
			s.Must("DELETE", configmaps+"/c", "")
			at := func(revision any) string { return fmt.Sprintf("%sconfigmaps:c:%v", item, revision) }
			s.Must("GET", at(first), "")
			to := s.Store.Applied()
			if n, err := d.Trim(t.Context(), to, 1000); err != nil || n == 0 {
				t.Fatalf("%d rows are deleted, %v", n, err)
			}
			refused(t, s, at(first), http.StatusGone, fmt.Sprint("kept from revision ", to))
			refused(t, s, at(to), http.StatusNotFound)
		})
	}
}
