package watches_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestBookmarks runs a watch of ten minutes in no time.
func TestBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := kinds.NewCatalogue(builtin.Resources())
		c := cache.New(catalogue)
		apply := func(revision int64, storage string) {
			c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
				Key: sqlstore.Key{Resource: storage, Namespace: "ns", Name: "a"}, Revision: revision, Value: []byte(servertest.ConfigMap("a", "", "1")),
			}}})
		}
		apply(1, "configmaps")
		h := servertest.InMemory(catalogue, c)
		start := time.Now()
		go func() {
			time.Sleep(90 * time.Second)
			apply(2, "secrets") // progress that the watch has no event of
			time.Sleep(60 * time.Second)
			apply(3, "configmaps")
		}()
		w := &timed{ResponseRecorder: httptest.NewRecorder(), start: start}
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet,
			"/api/v1/configmaps?watch=1&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=330", nil)
		h.ServeHTTP(w, r)
		want := "[1m0s BOOKMARK =@1 2m0s BOOKMARK =@2 2m30s MODIFIED a=1@3 3m0s BOOKMARK =@3 4m0s BOOKMARK =@3 5m0s BOOKMARK =@3 5m28s BOOKMARK =@3]"
		if fmt.Sprint(w.events) != want {
			t.Errorf("%v\nwant %s", w.events, want)
		}
		if lasted := time.Since(start); lasted != 330*time.Second {
			t.Errorf("lasted %v", lasted)
		}
	})
}

// timed notes when events were written.
type timed struct {
	*httptest.ResponseRecorder
	start  time.Time
	events []string
}

func (w *timed) Write(b []byte) (int, error) {
	var e servertest.Event
	if err := json.Unmarshal(b, &e); err != nil {
		return 0, err
	}
	w.events = append(w.events, time.Since(w.start).String(), e.String())
	return len(b), nil
}

// TestDeadlinesOnHTTP2 sees that a watch that has nothing to write lives on, and
// that one whose client takes nothing ends.
func TestDeadlinesOnHTTP2(t *testing.T) {
	for _, tc := range []struct {
		stuck bool
		lasts time.Duration
	}{{false, 300 * time.Second}, {true, 31 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			catalogue := kinds.NewCatalogue(builtin.Resources())
			c := cache.New(catalogue)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/configmaps?watch=1&resourceVersion=1&timeoutSeconds=300", nil)
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
			time.AfterFunc(time.Second, func() {
				c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
					Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: "a"}, Revision: 2, Value: []byte(servertest.ConfigMap("a", "", "1")),
				}}})
			})
			w := &deadlined{ResponseRecorder: httptest.NewRecorder(), stuck: tc.stuck, ctx: ctx, end: end}
			began := time.Now()
			servertest.InMemory(catalogue, c).ServeHTTP(w, r)
			if lasted := time.Since(began); lasted != tc.lasts {
				t.Errorf("stuck %v: the watch lasted %v", tc.stuck, lasted)
			}
		})
	}
}

// deadlined is the writer of a stream, which a deadline ends even while nothing is written. A stuck one takes the beginning, and then
// nothing.
type deadlined struct {
	*httptest.ResponseRecorder
	stuck bool
	begun bool
	ctx   context.Context
	end   context.CancelFunc
	timer *time.Timer
}

func (w *deadlined) SetWriteDeadline(t time.Time) error {
	if w.timer != nil {
		w.timer.Stop()
	}
	if !t.IsZero() {
		w.timer = time.AfterFunc(time.Until(t), w.end)
	}
	return nil
}

func (w *deadlined) FlushError() error {
	if begun := w.begun; !w.stuck || !begun {
		w.begun = true
		return nil
	}
	<-w.ctx.Done()
	return os.ErrDeadlineExceeded
}
