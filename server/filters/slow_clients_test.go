package filters_test

import (
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
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// distantClient takes each write in twice the time after which another request may take the seat of the writing one.
type distantClient struct {
	*httptest.ResponseRecorder
	wrote func()
	ended atomic.Bool
}

func (c *distantClient) Write(p []byte) (int, error) {
	if c.ended.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(2 * seats.Unmoved)
	c.wrote()
	return len(p), nil
}

// SetWriteDeadline serves http.ResponseController.
func (c *distantClient) SetWriteDeadline(at time.Time) error {
	c.ended.Store(!at.IsZero())
	return nil
}

// TestWaitsForSeatsAreNotSlowness: an answer with large objects, for whose memory others wait, ends if its client is slow. It does not
// end because its request has lost its seat during a write, and waits for another one.
func TestWaitsForSeatsAreNotSlowness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := filters.Limits{Read: 1}
		config := limits.Seats()
		config.Plain = true
		f := filters.NewInFlight(limits, flow.New(cache.New(nil), config))
		send := func(user string, w http.ResponseWriter, handle http.HandlerFunc) {
			id := &authx.Identity{Name: user, Groups: []string{authx.GroupAuthenticated}}
			filters.Scope(time.Now)(as(id)(f.Filter(handle))).ServeHTTP(w, httptest.NewRequest("GET", "/version", nil))
		}
		sizes, err := budget.SizesOf(4 << 20)
		if err != nil {
			t.Fatal(err)
		}
		a := &answers.Answers{Large: answers.NewMemoryGate(sizes)}
		for i := range 2 {
			place, err := a.Large.Enter(t.Context(), fmt.Sprint("user", i), sizes.UserAnswers())
			if err != nil {
				t.Fatal(err)
			}
			defer place.Leave()
		}
		var others sync.WaitGroup
		client := &distantClient{ResponseRecorder: httptest.NewRecorder()}
		client.wrote = sync.OnceFunc(func() { // another request takes the seat
			started := make(chan struct{})
			others.Go(func() {
				send("second", httptest.NewRecorder(), func(http.ResponseWriter, *http.Request) {
					close(started)
					time.Sleep(time.Minute)
				})
			})
			<-started
		})
		large := cache.NewOwnItem(&sqlstore.Row{Value: []byte(`{"metadata":{},"text":"` + strings.Repeat("x", 4<<20-200) + `"}`)}, nil)
		send("first", client, func(w http.ResponseWriter, r *http.Request) {
			q := &answers.Request{W: w, R: r, Scope: request.From(r.Context()), Resource: &kinds.Resource{New: func() kinds.Object { return &corev1.ConfigMap{} }}}
			defer q.End()
			if err := a.ReserveMemory(q, codecs.Form{Type: codecs.YAML}, large); err != nil {
				t.Fatal(err)
			}
			others.Go(func() {
				place, err := a.Large.Enter(t.Context(), "third", sizes.UserAnswers())
				if err != nil {
					t.Error(err)
				}
				place.Leave()
			})
			began := time.Now()
			for range 2 {
				if _, err := q.W.Write([]byte("text")); err != nil {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			}
			if took := time.Since(began); took < time.Minute {
				t.Errorf("the request waited %v for a seat", took)
			}
		})
		others.Wait()
	})
}
