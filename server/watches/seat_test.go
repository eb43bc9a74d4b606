package watches_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestSeatWhileTheClientIsSlow: whatever a watch writes, others may have its seat while the
// client does not take it, and it is given back once the watch has begun.
func TestSeatWhileTheClientIsSlow(t *testing.T) {
	for query, wants := range map[string]string{
		"watch=1&resourceVersion=0": "ADDED",
		"watch=1&resourceVersion=1": "",
		"watch=1&resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true": "BOOKMARK",
	} {
		synctest.Test(t, func(t *testing.T) {
			catalogue := kinds.NewCatalogue(builtin.Resources())
			c := cache.New(catalogue)
			c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
				Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: "a"}, Revision: 1, Value: []byte(servertest.ConfigMap("a", "", "1")),
			}}})
			stored := objects.New(catalogue, nil, c)
			shown := &answers.Answers{Items: stored}
			next := &verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown}}
			w := &seated{ResponseRecorder: httptest.NewRecorder(), t: t}
			servertest.Permitted(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				request.From(r.Context()).Seat = w
				next.ServeHTTP(w, r)
			})).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/configmaps?timeoutSeconds=1&"+query, nil))
			if !w.left || !w.flushed || !strings.Contains(w.Body.String(), wants) {
				t.Errorf("%s: left %t, flushed %t, %q", query, w.left, w.flushed, w.Body)
			}
		})
	}
}

// seated is the writer of a watch, and its seat.
type seated struct {
	*httptest.ResponseRecorder
	t                      *testing.T
	sending, left, flushed bool
}

func (w *seated) Sending() { w.sending = true }
func (w *seated) Leave()   { w.left = true }
func (w *seated) Sent() error {
	w.sending = false
	return nil
}

func (w *seated) waits() {
	if !w.sending && !w.left {
		w.t.Error("the watch keeps its seat while its client takes what it writes")
	}
}

func (w *seated) Write(p []byte) (int, error) {
	w.waits()
	return w.ResponseRecorder.Write(p)
}

func (w *seated) FlushError() error {
	w.waits()
	w.flushed = true
	return nil
}
