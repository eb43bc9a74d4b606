package answers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestPaced: short answers do not wait; long ones take turns, return them, and end with the
// request.
func TestPaced(t *testing.T) {
	line := NewTurnScheduler(2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &Answers{Turns: line}
	scope := &request.Scope{}
	writer := func(buf *bytes.Buffer) *turnWriter {
		return &turnWriter{Writer: buf, Turn: Turn{gate: a.Turns.gate, ctx: ctx, scope: scope, left: freeBytes}}
	}
	var long, short bytes.Buffer
	w := writer(&long)
	piece := make([]byte, Chunk)
	for range 100 {
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if w.place == nil || !scope.Long || long.Len() != 100*len(piece) {
		t.Errorf("%d bytes were written, with a turn: %t; long: %t", long.Len(), w.place != nil, scope.Long)
	}
	w.End()
	if w.place != nil {
		t.Error("the turn is kept")
	}
	var all []*fair.Place
	for range 1000 { // more than there are processors, until one has to wait
		soon, end := context.WithTimeout(ctx, time.Millisecond)
		place, err := line.gate.Enter(soon, "a", 0)
		end()
		if err != nil {
			break
		}
		all = append(all, place)
	}
	if len(all) == 1000 {
		t.Fatal("nobody waits")
	}
	scope.Long = false
	if n, err := writer(&short).Write(make([]byte, freeBytes)); n != freeBytes || err != nil || scope.Long {
		t.Errorf("a short answer waited: %d %v", n, err)
	}
	cancel()
	for i := range all {
		all[i].Leave()
	}
}

// TestSeatWhileAnswersTakeTurns: others may use the seat of a request whose long answer waits for its turn.
func TestSeatWhileAnswersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, seat := fair.NewGate(fair.Limits{Places: 1}), &freeSeat{}
		place, err := gate.Enter(t.Context(), "other", 0)
		if err != nil {
			t.Fatal(err)
		}
		turn := Turn{gate: gate, ctx: t.Context(), scope: &request.Scope{Seat: seat}, user: "a"}
		defer turn.End()
		done := make(chan error, 1)
		go func() { done <- turn.Next(1) }()
		synctest.Wait()
		if !seat.free.Load() {
			t.Error("the request keeps its seat while it waits")
		}
		place.Leave()
		if err := <-done; err != nil || seat.free.Load() || turn.place == nil {
			t.Errorf("%v; the seat is free: %t", err, seat.free.Load())
		}
	})
}

// TestBrokenOff: an incomplete answer does not end like a complete one, unless the client has left.
func TestBrokenOff(t *testing.T) {
	failure := errors.New("an item cannot be read any more")
	for name, c := range map[string]struct {
		fails, over, gone bool
		want              any
	}{
		"whole":               {},
		"an item that fails":  {fails: true, want: failure},
		"the end of its time": {fails: true, over: true, want: http.ErrAbortHandler},
		"nobody reads it":     {gone: true},
	} {
		for _, as := range []codecs.Form{{Type: codecs.YAML}, {Type: codecs.JSON, Pretty: true}} {
			ctx, cancel := context.WithCancel(t.Context())
			if c.over {
				cancel()
			}
			a, w := &Answers{}, httptest.NewRecorder()
			q := &Request{W: w, R: httptest.NewRequestWithContext(ctx, "GET", "/", nil), Scope: &request.Scope{}}
			if c.gone {
				q.W = leaving{w}
			}
			func() {
				defer func() {
					if reason := recover(); reason != c.want {
						t.Errorf("%s, %s: %v, not %v", name, as.Type, reason, c.want)
					}
				}()
				a.stream(q, as, http.StatusOK, func(w io.Writer) error {
					if _, err := w.Write([]byte("[" + strings.Repeat("1,", 50_000) + "1]")); err != nil || !c.fails {
						return err
					}
					return failure
				})
			}()
			cancel()
		}
	}
}

// leaving is a client that goes.
type leaving struct{ http.ResponseWriter }

func (leaving) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestPackedListsArePaced: a long list from compressed pieces takes turns, be they kept or not,
// and does not pass for a short answer.
func TestPackedListsArePaced(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	r := catalogue.Lookup("", "v1", "configmaps")
	page := &objects.Page{Revision: 1000, Remaining: -1}
	for i := range 1000 {
		row := &sqlstore.Row{Key: sqlstore.Key{Resource: r.Storage.Key, Namespace: "ns", Name: fmt.Sprint("c", i)}, Revision: int64(i + 1), Created: int64(i + 1)}
		row.Value = fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns"},"data":{"k":%q}}`, row.Key.Name, strings.Repeat("v", 4000))
		page.Items = append(page.Items, cache.NewOwnItem(row, r.Storage))
	}
	line := NewTurnScheduler(1)
	a := &Answers{Items: objects.New(catalogue, nil, cache.New(catalogue)), Forms: forms.Forms{JSON: jsoncodec.New(jsoncodec.Settings{})}, Packed: packed.New(64 << 20), Compress: true, Turns: line}
	list := func(ctx context.Context, items []*cache.Item) (bytes int, long bool) {
		t.Helper()
		w, req := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil)
		req.Header.Set("Accept-Encoding", "gzip")
		q := &Request{W: w, R: req, Resource: r, Scope: request.NewScope(w.Header(), time.Now())}
		q.Scope.Info = &request.Info{Query: req.URL.Query()}
		part := *page
		part.Items = items
		if err := a.Page(q, codecs.Form{Type: codecs.JSON}, &part); err != nil || w.Header().Get("Content-Encoding") != "gzip" {
			t.Fatal(err, w.Header())
		}
		return w.Body.Len(), q.Scope.Long
	}
	whole := 0
	for _, when := range []string{"made", "kept"} {
		n, long := list(t.Context(), page.Items)
		if whole = n; !long {
			t.Errorf("pieces that are %s: the list passes for a short answer", when)
		}
	}
	if _, long := list(t.Context(), page.Items[:100]); long {
		t.Error("a short list takes turns")
	}

	// In a time of its own: turns end by themselves, and the last one must not before the list comes.
	synctest.Test(t, func(t *testing.T) {
		place, err := line.gate.Enter(t.Context(), "another", 0)
		if err != nil {
			t.Fatal(err)
		}
		for second := range 2 { // its turn ends by itself; the next one has no turn either
			if next, err := line.gate.Enter(t.Context(), fmt.Sprint("another", second), 0); err == nil {
				defer next.Leave()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if n, _ := list(ctx, page.Items); n >= whole {
			t.Error("it waits for nobody")
		}
		place.Leave()
	})
}
