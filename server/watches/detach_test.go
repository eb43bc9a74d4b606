package watches_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/server/wire"
	"github.com/rowlock/rowlock/sqlstore"
)

// alone is a stream whose answer continues without its handler. It records the writes, and when they came.
type alone struct {
	start  time.Time
	broken string // what a write of an event panics or fails with; "": nothing
	slow   bool   // the client takes events when it is waited for alone

	mu     sync.Mutex
	events []string
	closed []bool // whether complete
	overs  int
}

// detaching is the writer of an answer that can be detached.
type detaching struct {
	*httptest.ResponseRecorder
	stream *alone
}

func (d detaching) Detach() (wire.Stream, bool) { return d.stream, true }

func (a *alone) TryWrite(b *[]byte) (bool, error) {
	err := a.Write(b)
	return a.slow, err
}

func (a *alone) Write(b *[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.broken {
	case "panic":
		panic("oh")
	case "error":
		return errors.New("oh")
	}
	var e servertest.Event
	if err := json.Unmarshal((*b)[wire.Headroom:], &e); err != nil {
		return err
	}
	a.events = append(a.events, time.Since(a.start).String(), e.String())
	return nil
}

func (a *alone) Flush() error { return nil }

func (a *alone) Close(complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = append(a.closed, complete)
}

func (a *alone) WhenEnded(ctx context.Context, f func()) func() bool {
	return context.AfterFunc(ctx, f)
}

func (a *alone) Over() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.overs++
}

func (a *alone) isOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.overs+len(a.closed) > 0
}

// apart is a server whose handlers return, and the results of their requests.
type apart struct {
	cache  *cache.Cache
	stream *alone
	server http.Handler
	oops   int
	ended  []string
}

func newApart(stream *alone) *apart {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	a := &apart{cache: cache.New(catalogue), stream: stream}
	stored := objects.New(catalogue, nil, a.cache)
	shown := &answers.Answers{Items: stored}
	h := &verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown, Log: slog.New(slog.DiscardHandler)}}
	a.server = filters.Recover(slog.New(slog.DiscardHandler), func() { a.oops++ })(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if s := request.From(r.Context()); s.IsDetached() {
			s.AtEnd(func() { a.ended = append(a.ended, fmt.Sprint(s.Panicked())) })
		}
	}))
	a.server = scoped(a.server)
	return a
}

func (a *apart) put(revision int64, storage string) {
	a.cache.Apply([]sqlstore.Change{{Row: sqlstore.Row{
		Key: sqlstore.Key{Resource: storage, Namespace: "ns", Name: "a"}, Revision: revision, Value: []byte(servertest.ConfigMap("a", "", "1")),
	}}})
}

// watch returns when the handler has.
func (a *apart) watch(ctx context.Context, query string) {
	a.stream.start = time.Now()
	a.server.ServeHTTP(detaching{httptest.NewRecorder(), a.stream}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/configmaps?watch=1&resourceVersion=1&"+query, nil))
}

// TestOutlivingBookmarks runs a watch of ten minutes in no time, whose handler has returned.
func TestOutlivingBookmarks(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := newApart(&alone{slow: slow})
			a.put(1, "configmaps")
			a.watch(t.Context(), "allowWatchBookmarks=true&timeoutSeconds=330")
			if lasted := time.Since(a.stream.start); lasted != 0 {
				t.Errorf("the handler stays for %v", lasted)
			}
			time.Sleep(90 * time.Second)
			a.put(2, "secrets") // progress that the watch has no event of
			time.Sleep(60 * time.Second)
			a.put(3, "configmaps")
			time.Sleep(330*time.Second - 150*time.Second - time.Millisecond)
			synctest.Wait()
			if a.stream.isOver() {
				t.Error("it ends too early")
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			want := "[1m0s BOOKMARK =@1 2m0s BOOKMARK =@2 2m30s MODIFIED a=1@3 3m0s BOOKMARK =@3 4m0s BOOKMARK =@3 5m0s BOOKMARK =@3 5m28s BOOKMARK =@3]"
			if fmt.Sprint(a.stream.events) != want {
				t.Errorf("slow %v: %v\nwant %s", slow, a.stream.events, want)
			}
			a.over(t, "complete", true, "<nil>", 0)
		})
	}
}

// over reports that a watch has ended once, and how.
func (a *apart) over(t *testing.T, name string, complete bool, panicked string, oops int) {
	t.Helper()
	a.stream.mu.Lock()
	defer a.stream.mu.Unlock()
	if fmt.Sprint(a.stream.closed, a.stream.overs, a.ended, a.oops) != fmt.Sprint([]bool{complete}, 1, []string{panicked}, oops) {
		t.Errorf("%s: closed %v, over %d times, ended with %v, %d panics", name, a.stream.closed, a.stream.overs, a.ended, a.oops)
	}
	a.cache.Close()
}

// TestOutlivingEnds: whatever a watch ends with whose handler has returned, its request ends
// once, and nothing is written afterwards.
func TestOutlivingEnds(t *testing.T) {
	for _, tc := range []struct {
		name     string
		broken   string
		end      func(a *apart, cancel func())
		complete bool
		panicked string
		oops     int
	}{
		{"its client goes", "", func(_ *apart, cancel func()) { cancel() }, true, "<nil>", 0},
		{"its time is up", "", func(*apart, func()) { time.Sleep(time.Minute) }, true, "<nil>", 0},
		{"a write fails", "error", func(a *apart, _ func()) { a.put(2, "configmaps") }, true, "<nil>", 0},
		{"a write panics", "panic", func(a *apart, _ func()) { a.put(2, "configmaps") }, false, "oh", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newApart(&alone{broken: tc.broken})
			a.put(1, "configmaps")
			ctx, cancel := context.WithCancel(t.Context())
			a.watch(ctx, "timeoutSeconds=60")
			synctest.Wait()
			if a.stream.isOver() {
				t.Errorf("%s: it is over at once", tc.name)
			}
			tc.end(a, cancel)
			synctest.Wait()
			for revision := int64(3); revision < 6; revision++ {
				a.put(revision, "configmaps")
			}
			cancel()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			a.over(t, tc.name, tc.complete, tc.panicked, tc.oops)
			if len(a.stream.events) > 0 {
				t.Errorf("%s: %v", tc.name, a.stream.events)
			}
		})
	}
}
