package watches_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/server/wire"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// metered is a stream whose client takes so many bytes a second.
type metered struct {
	*alone
	rate  int
	taken atomic.Int64
}

func (m *metered) Write(b *[]byte) error {
	n := len(*b) - wire.Headroom
	time.Sleep(time.Duration(n) * time.Second / time.Duration(m.rate))
	m.taken.Add(int64(n))
	return nil
}

// meteredWriter is the writer of an answer that goes on as a stream.
type meteredWriter struct {
	*httptest.ResponseRecorder
	stream *metered
}

func (w meteredWriter) Detach() (wire.Stream, bool) { return w.stream, true }

// TestSlowWatchesGiveTheirRoomBack: a watch whose client reads a large initial object slowly ends while others wait for its room,
// like any answer; one that is read faster, or that nobody waits for, gets everything.
func TestSlowWatchesGiveTheirRoomBack(t *testing.T) {
	const size = budget.DefaultBody + 1<<20
	for _, tc := range []struct {
		name  string
		rate  int
		waits bool
		whole bool
	}{
		{"slow", 100 << 10, true, false},
		{"fast", 4 << 20, true, true},
		{"alone", 100 << 10, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			catalogue := kinds.NewCatalogue(builtin.Resources())
			c := cache.New(catalogue)
			defer c.Close()
			c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
				Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: "a"}, Revision: 1, Value: []byte(servertest.ConfigMap("a", "", strings.Repeat("v", size))),
			}}})
			stored, room := objects.New(catalogue, nil, c), fair.NewGate(fair.Limits{Places: math.MaxInt32, Weight: 2 * size, Free: 1})
			shown := &answers.Answers{Items: stored, Large: room}
			h := scoped(&verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown, Log: slog.New(slog.DiscardHandler)}})
			ctx, cancel := context.WithCancel(t.Context())
			stream := &metered{alone: &alone{}, rate: tc.rate}
			began, left := time.Now(), make(chan time.Duration, 1)
			go func() {
				if tc.waits {
					time.Sleep(time.Second)
					place, err := room.Enter(ctx, "other", 2*size)
					if err != nil {
						t.Error(err)
					}
					place.Leave()
				}
				left <- time.Since(began)
			}()
			h.ServeHTTP(meteredWriter{httptest.NewRecorder(), stream}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/configmaps?watch=1&resourceVersion=0&timeoutSeconds=600", nil))
			if waited := <-left; waited > 15*time.Second {
				t.Errorf("%s: the other waited for %v", tc.name, waited)
			}
			if taken := stream.taken.Load(); (taken > size) != tc.whole {
				t.Errorf("%s: the client got %d bytes of %d", tc.name, taken, size)
			}
			cancel()
			synctest.Wait()
			if !stream.isOver() {
				t.Errorf("%s: the watch goes on", tc.name)
			}
		})
	}
}

// TestSlowReplaysEnd: a watch that has read large objects of the past from the database, as few watches may at a time, ends if its
// client is slow to read the small ones before them.
func TestSlowReplaysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := storetest.NewShared().Open()
		put := func(name string, size int) {
			op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: name}, Value: []byte(servertest.ConfigMap(name, "", strings.Repeat("v", size)))}
			if out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil || out[0].Err != nil {
				t.Fatal(err, out)
			}
		}
		put("first", 10)
		for i := range 200 {
			put(fmt.Sprint("small", i), 20<<10)
		}
		put("large", budget.DefaultBody)
		catalogue, store := kinds.NewCatalogue(builtin.Resources()), sqlstore.New(d, sqlstore.Config{})
		c := cache.New(catalogue)
		defer c.Close()
		if _, err := c.Load(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		stored := objects.New(catalogue, store, c)
		shown := &answers.Answers{Items: stored}
		h := scoped(&verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown, Log: slog.New(slog.DiscardHandler)}})
		stream := &metered{alone: &alone{}, rate: 20 << 10}
		began := time.Now()
		h.ServeHTTP(meteredWriter{httptest.NewRecorder(), stream}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/configmaps?watch=1&resourceVersion=1&timeoutSeconds=600", nil))
		synctest.Wait()
		if took, taken := time.Since(began), stream.taken.Load(); !stream.isOver() || took > 75*time.Second || taken < 1<<20 {
			t.Errorf("after %v and %d bytes the watch is over: %t", took, taken, stream.isOver())
		}
	})
}

// meteredSeat is the seat of a watch, and records whether the watch has returned it.
type meteredSeat struct{ free atomic.Bool }

func (s *meteredSeat) Sending()    { s.free.Store(true) }
func (s *meteredSeat) Sent() error { s.free.Store(false); return nil }
func (s *meteredSeat) Leave()      { s.free.Store(true) }

// TestWatchesThatWaitForRoom: a watch that waits for memory for a large initial object returns its seat, and the server does not count
// the time as that of a slow client.
func TestWatchesThatWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = budget.DefaultBody + 1<<20
		catalogue := kinds.NewCatalogue(builtin.Resources())
		c := cache.New(catalogue)
		defer c.Close()
		c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
			Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: "a"}, Revision: 1, Value: []byte(servertest.ConfigMap("a", "", strings.Repeat("v", size))),
		}}})
		stored, room := objects.New(catalogue, nil, c), fair.NewGate(fair.Limits{Places: math.MaxInt32, Weight: 2 * size, Free: 1})
		shown := &answers.Answers{Items: stored, Large: room}
		next := &verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: shown, Watches: &watches.Server{Objects: stored, Answers: shown, Log: slog.New(slog.DiscardHandler)}}
		seat := &meteredSeat{}
		h := scoped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request.From(r.Context()).Seat = seat
			next.ServeHTTP(w, r)
		}))
		ctx, cancel := context.WithCancel(t.Context())
		place, err := room.Enter(ctx, "other", 2*size)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(5 * time.Minute)
			if !seat.free.Load() {
				t.Error("the watch keeps its seat while it waits")
			}
			place.Leave()
		}()
		stream := &metered{alone: &alone{}, rate: 4 << 20}
		h.ServeHTTP(meteredWriter{httptest.NewRecorder(), stream}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/configmaps?watch=1&resourceVersion=0&timeoutSeconds=600", nil))
		synctest.Wait()
		if taken := stream.taken.Load(); taken < size || stream.isOver() {
			t.Errorf("the client got %d bytes of %d, and the watch is over: %t", taken, size, stream.isOver())
		}
		cancel()
		synctest.Wait()
	})
}
