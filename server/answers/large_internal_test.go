package answers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
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

// itemOf returns an item of an object of n bytes, to which its resourceVersion comes.
func itemOf(n int) *cache.Item {
	const head, tail = `{"metadata":{},"text":"`, `"}`
	return cache.NewOwnItem(&sqlstore.Row{Value: []byte(head + strings.Repeat("x", n-len(head)-len(tail)) + tail)}, nil)
}

// TestRoomForLargeObjects: answers with large objects have as many bytes as there is room for, a third of it for one user; others
// wait. Two users who keep what they have leave room for a third.
func TestRoomForLargeObjects(t *testing.T) {
	sizes, err := budget.SizesOf(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	a := &Answers{Large: NewMemoryGate(sizes)}
	large := itemOf(4<<20 - 100) // its resourceVersion comes on top
	json, yaml := codecs.Form{Type: codecs.JSON}, codecs.Form{Type: codecs.YAML}
	of := func(user string) *Request {
		return &Request{R: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Resource: &kinds.Resource{New: func() kinds.Object { return &corev1.ConfigMap{} }}, Scope: &request.Scope{User: &authx.Identity{Name: user}}}
	}
	waits := func(user string, as codecs.Form, it *cache.Item) bool {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		q := of(user)
		q.R = q.R.WithContext(ended)
		defer q.End()
		err := a.ReserveMemory(q, as, it)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return err != nil
	}
	var some []*Request
	for range 8 {
		q := of("one")
		some = append(some, q)
		for range 2 { // a list has many
			if err := a.ReserveMemory(q, json, large); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !waits("one", json, large) || waits("other", json, large) || waits("one", json, itemOf(budget.DefaultBody-100)) {
		t.Error("a third of the room is for one user, and small objects need none")
	}
	q, second := of("other"), of("second")
	for _, q := range []*Request{q, second} {
		if waits(q.User(), yaml, large) {
			t.Fatalf("the answers of others leave no room for the user %s", q.User())
		}
		if err := a.ReserveMemory(q, yaml, large); err != nil {
			t.Fatal(err)
		}
	}
	if !waits("third", json, large) {
		t.Error("there is room for more than 24 objects; another form counts eight times")
	}
	q.End()
	some[0].End()
	if waits("third", yaml, large) || waits("one", json, large) {
		t.Error("the room is not given back")
	}
	if err := a.ReserveMemory(q, yaml, large); err != nil || !waits("third", yaml, large) {
		t.Errorf("a request that has given its room back takes none again: %v", err)
	}
	q.End()
	second.End()
	for _, q := range some {
		q.End()
	}
	converted := of("one")
	converted.Resource = &kinds.Resource{FromStorage: func(obj kinds.Object) (kinds.Object, error) { return obj, nil }}
	if err := a.ReserveMemory(converted, json, itemOf(budget.DefaultBody-100), large, itemOf(100)); err != nil || !waits("one", json, large) {
		t.Errorf("JSON of another version than the stored one counts eight times: %v", err)
	}
	converted.End()
	least := itemOf(budget.DefaultBody + 1)
	for n, full := range map[int]bool{1: false, 2: true} {
		kept := of("one")
		kept.Resource = &kinds.Resource{Schema: converts{}}
		if err := a.ReserveMemory(kept, json, []*cache.Item{least, least}[:n]...); err != nil || waits("one", json, large) != full {
			t.Errorf("%d objects that are converted: %v; the room is full: %t", n, err, !full)
		}
		kept.End()
	}
}

// freeSeat is the seat of a request, which others may use at times.
type freeSeat struct{ free atomic.Bool }

func (s *freeSeat) Sending()    { s.free.Store(true) }
func (s *freeSeat) Sent() error { s.free.Store(false); return nil }
func (s *freeSeat) Leave()      {}

// TestSeatWhileAnswersWait: others may use the seat of a request that waits for room. Otherwise those that have the room could wait for
// the seats of those that wait for it.
func TestSeatWhileAnswersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := budget.MostSizes()
		a, seat := &Answers{Large: NewMemoryGate(sizes)}, &freeSeat{}
		var taken []*fair.Place
		for i := range 3 {
			place, err := a.Large.Enter(t.Context(), fmt.Sprint("user", i), sizes.UserAnswers())
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, place)
		}
		q := &Request{W: httptest.NewRecorder(), R: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Scope: &request.Scope{Seat: seat},
			Resource: &kinds.Resource{New: func() kinds.Object { return &corev1.ConfigMap{} }}}
		done := make(chan error, 1)
		go func() { done <- a.ReserveMemory(q, codecs.Form{Type: codecs.JSON}, itemOf(budget.DefaultBody+1)) }()
		synctest.Wait()
		if !seat.free.Load() {
			t.Error("the request keeps its seat while it waits")
		}
		taken[0].Leave()
		if err := <-done; err != nil || seat.free.Load() {
			t.Errorf("%v; the seat is free: %t", err, seat.free.Load())
		}
		q.End()
	})
}

// reader is a client that takes so many bytes a second.
type reader struct {
	http.ResponseWriter
	rate  int
	ended chan struct{}

	mu sync.Mutex
	at time.Time // the deadline
}

func (r *reader) Write(p []byte) (int, error) {
	select {
	case <-time.After(time.Duration(len(p)) * time.Second / time.Duration(r.rate)):
		return len(p), nil
	case <-r.ended:
		return 0, os.ErrDeadlineExceeded
	}
}

// SetWriteDeadline serves http.ResponseController.
func (r *reader) SetWriteDeadline(at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at = at; !at.IsZero() {
		close(r.ended)
	}
	return nil
}

func (r *reader) deadline() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// TestSlowReadersGiveTheirRoomBack: an answer with large objects ends if its client reads it slowly while others wait for
// room; that of a faster client does not, and none ends while nothing waits.
func TestSlowReadersGiveTheirRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes, err := budget.SizesOf(4 << 20)
		if err != nil {
			t.Fatal(err)
		}
		a := &Answers{Large: NewMemoryGate(sizes)}
		large := itemOf(4<<20 - 100)
		of := func(user string, rate int) (*Request, *reader) {
			w := &reader{ResponseWriter: httptest.NewRecorder(), rate: rate, ended: make(chan struct{})}
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			return &Request{W: w, R: r, Resource: &kinds.Resource{New: func() kinds.Object { return &corev1.ConfigMap{} }}, Scope: &request.Scope{User: &authx.Identity{Name: user}}}, w
		}
		var clients []*reader
		var over [3]atomic.Bool
		stop := make(chan struct{})
		for i, rate := range []int{1000, leastRate / 2, 2 * leastRate} {
			q, w := of(fmt.Sprint("user", i), rate)
			clients = append(clients, w)
			if err := a.ReserveMemory(q, codecs.Form{Type: codecs.YAML}, large); err != nil {
				t.Fatal(err)
			}
			go func() {
				defer q.End()
				defer over[i].Store(true)
				for body := make([]byte, Chunk+1); ; {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := q.W.Write(body); err != nil {
						return
					}
				}
			}()
		}
		time.Sleep(time.Hour)
		for i := range over {
			if over[i].Load() {
				t.Errorf("the answer %d ended, and nothing waited", i)
			}
		}
		q, _ := of("other", leastRate)
		began := time.Now()
		if err := a.ReserveMemory(q, codecs.Form{Type: codecs.YAML}, large); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it waited for %v", took)
		}
		synctest.Wait()
		for i, want := range []bool{true, true, false} {
			if over[i].Load() != want {
				t.Errorf("the answer %d has ended: %t", i, !want)
			}
			if at := clients[i].deadline(); !at.IsZero() {
				t.Errorf("the deadline %v stays on the connection %d", at, i)
			}
		}
		close(stop)
		q.End()
		time.Sleep(time.Minute) // the fast client ends
	})
}

// converts is a schema whose objects must be converted.
type converts struct{ kinds.AsStored }

func (converts) Clean(int64) bool { return false }

// conversions notes that items are converted.
type conversions struct {
	Items
	made bool
}

func (c *conversions) Convert(context.Context, *kinds.Resource, []*cache.Item) error {
	c.made = true
	return nil
}

// TestRoomBeforeConversions: a list waits for room before it converts its items.
func TestRoomBeforeConversions(t *testing.T) {
	items := &conversions{}
	a := &Answers{Items: items, Large: NewMemoryGate(budget.Sizes{})}
	place, err := a.Large.Enter(t.Context(), "one", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Leave()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	q := &Request{R: httptest.NewRequestWithContext(ended, "GET", "/", nil), Resource: &kinds.Resource{New: func() kinds.Object { return &corev1.ConfigMap{} }}, Scope: &request.Scope{User: &authx.Identity{Name: "one"}}}
	defer q.End()
	page := &objects.Page{Items: []*cache.Item{itemOf(budget.DefaultBody + 1)}}
	if err := a.Page(q, codecs.Form{Type: codecs.JSON}, page); !errors.Is(err, context.Canceled) || items.made {
		t.Errorf("%v; items were converted: %t", err, items.made)
	}
}

// waiting is a context that reports when a goroutine begins to wait for its end.
type waiting struct {
	context.Context
	begun func()
}

func (w waiting) Done() <-chan struct{} {
	w.begun()
	return w.Context.Done()
}

// TestNobodyWaitsForRoomInAPiece: a list that waits for room keeps no other list of the same pieces from going on.
func TestNobodyWaitsForRoomInAPiece(t *testing.T) {
	r := kinds.NewCatalogue(builtin.Resources()).Lookup("", "v1", "configmaps")
	row := &sqlstore.Row{Key: sqlstore.Key{Resource: r.Storage.Key, Namespace: "ns", Name: "c"}, Revision: 1, Created: 1}
	row.Value = fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"ns"},"data":{"k":%q}}`, strings.Repeat("v", budget.DefaultBody))
	page := &objects.Page{Revision: 1, Remaining: -1, Items: []*cache.Item{cache.NewOwnItem(row, r.Storage)}}
	a := &Answers{Forms: forms.Forms{JSON: jsoncodec.New(jsoncodec.Settings{})}, Packed: packed.New(64 << 20), Compress: true, Large: NewMemoryGate(budget.Sizes{})}
	place, err := a.Large.Enter(t.Context(), "one", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, user string) int {
		w := httptest.NewRecorder()
		q := &Request{W: w, R: httptest.NewRequestWithContext(ctx, "GET", "/", nil), Resource: r, Scope: &request.Scope{User: &authx.Identity{Name: user}}}
		defer q.End()
		v, err := a.View(q, codecs.Form{Type: codecs.JSON})
		if err != nil {
			t.Error(err)
			return 0
		}
		a.sendPacked(q, v, page, []byte(`{"items":[`))
		return w.Body.Len()
	}
	begun, first, second := make(chan struct{}), make(chan int, 1), make(chan int, 1)
	go func() { first <- list(waiting{t.Context(), sync.OnceFunc(func() { close(begun) })}, "one") }()
	<-begun
	go func() { second <- list(t.Context(), "other") }()
	select {
	case n := <-second:
		second <- n
	case <-time.After(2 * time.Minute):
		t.Error("the list of one user waits for the room of another")
	}
	place.Leave()
	if a, b := <-first, <-second; a != b || a < 1000 {
		t.Errorf("the lists have %d and %d bytes", a, b)
	}
}
