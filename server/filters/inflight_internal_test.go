package filters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/request"
)

// limited is an InFlight whose clock a test moves.
type limited struct {
	*InFlight
	clock atomic.Int64
	log   sync.Mutex
	by    []string // limits that refused
}

func newLimited(l Limits) *limited {
	f := &limited{}
	config := l.Seats()
	config.Plain, config.Now = true, func() time.Duration { return time.Duration(f.clock.Load()) }
	f.clock.Store(1)
	f.InFlight = NewInFlight(l, flow.New(cache.New(nil), config))
	f.Limited = func(limit string) {
		f.log.Lock()
		defer f.log.Unlock()
		f.by = append(f.by, limit)
	}
	return f
}

// left fails the test if anything has seats, waits for them or counts for a user.
func (f *limited) left(t *testing.T) {
	t.Helper()
	if running, waiting, users := f.Flows.Seats.Usage(); running+waiting+users != 0 {
		t.Errorf("left: %d running, %d waiting, %d users", running, waiting, users)
	}
}

// start serves a request of a user in a goroutine.
func (f *limited) start(ctx context.Context, user, method, target string, body io.Reader, w http.ResponseWriter, last http.HandlerFunc) (done chan struct{}) {
	done = make(chan struct{})
	r := httptest.NewRequestWithContext(ctx, method, target, body)
	h := Scope(time.Now)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request.From(r.Context()).User = &authx.Identity{Name: user, Groups: []string{"system:authenticated"}}
		f.Filter(last).ServeHTTP(w, r)
	}))
	go func() {
		defer close(done)
		h.ServeHTTP(w, r)
	}()
	return done
}

// ask serves a request, and returns its code.
func (f *limited) ask(user, method, target, body string) int {
	w := httptest.NewRecorder()
	<-f.start(context.Background(), user, method, target, strings.NewReader(body), w, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})
	return w.Code
}

// closed is the writer of a client that takes nothing until it opens.
type closed struct {
	*httptest.ResponseRecorder
	begun, opens chan struct{}
	once         sync.Once
}

func newClosed() *closed {
	return &closed{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), opens: make(chan struct{})}
}

func (c *closed) Write(p []byte) (int, error) {
	c.once.Do(func() { close(c.begun) })
	<-c.opens
	return c.ResponseRecorder.Write(p)
}

func say(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func TestPlacesOfClosedWindows(t *testing.T) {
	f := newLimited(Limits{Read: 4, ReadShare: 4, Slow: 3})
	var done []chan struct{}
	var clients []*closed
	begin := func() {
		c := newClosed()
		clients = append(clients, c)
		done = append(done, f.start(context.Background(), "mallory", "GET", "/version", nil, c, say))
		<-c.begun
	}
	for range 4 {
		begin()
	}
	if code := f.ask("bob", "GET", "/version", ""); code != 429 {
		t.Errorf("answers that have only begun are under way: %d", code)
	}
	f.clock.Add(int64(seats.Unmoved))
	for range 10 {
		if code := f.ask("bob", "GET", "/version", ""); code != 200 {
			t.Fatalf("another user, while nobody takes the answers: %d", code)
		}
	}
	// The user may have so many of them, and no more.
	for range 3 {
		begin()
		f.clock.Add(int64(seats.Unmoved))
	}
	if code := f.ask("mallory", "GET", "/version", ""); code != 429 || f.by[len(f.by)-1] != limitSlow {
		t.Errorf("one too many of the same user: %d, %q", code, f.by)
	}
	if code := f.ask("bob", "GET", "/version", ""); code != 200 {
		t.Errorf("another user: %d", code)
	}
	for i, c := range clients {
		close(c.opens)
		<-done[i]
		if c.Body.String() != "ok" {
			t.Errorf("answer %d: %q", i, c.Body)
		}
	}
	f.left(t)
}

// An answer goes on with a place again, and does not run without.
func TestPlacesAreTakenBack(t *testing.T) {
	f := newLimited(Limits{Read: 1, ReadShare: 1})
	c, running := newClosed(), atomic.Int64{}
	most := atomic.Int64{}
	run := func() func() {
		most.Store(max(most.Load(), running.Add(1)))
		return func() { running.Add(-1) }
	}
	first := f.start(context.Background(), "mallory", "GET", "/version", nil, c, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a")
		defer run()()
		_, _ = io.WriteString(w, "b")
	})
	<-c.begun
	f.clock.Add(int64(seats.Unmoved))
	inside, leave := make(chan struct{}), make(chan struct{})
	second := f.start(context.Background(), "bob", "GET", "/version", nil, httptest.NewRecorder(), func(http.ResponseWriter, *http.Request) {
		defer run()()
		close(inside)
		<-leave
	})
	<-inside
	close(c.opens)
	for { // until the first waits for a place
		if _, waiting, _ := f.Flows.Seats.Usage(); waiting == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(leave)
	<-second
	<-first
	if most.Load() != 1 || c.Body.String() != "ab" {
		t.Errorf("%d ran at once, answer %q", most.Load(), c.Body)
	}
}

func TestPlacesOfTrickledBodies(t *testing.T) {
	f := newLimited(Limits{Write: 2, WriteShare: 2, Slow: 2})
	var ends []*io.PipeWriter
	var done []chan struct{}
	for range 4 {
		in, out := io.Pipe()
		ends = append(ends, out)
		begun := make(chan struct{})
		done = append(done, f.start(context.Background(), "mallory", "POST", "/version", in, httptest.NewRecorder(), func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			if got, err := io.ReadAll(r.Body); string(got) != "body" || err != nil {
				t.Errorf("body %q, %v", got, err)
			}
		}))
		<-begun
		_, _ = out.Write([]byte("bo")) // waits until it is read: then the place is free
	}
	if code := f.ask("bob", "POST", "/version", "x"); code != 200 {
		t.Errorf("another user: %d", code)
	}
	if code := f.ask("mallory", "POST", "/version", "x"); code != 429 || f.by[0] != limitSlow {
		t.Errorf("one too many of the same user: %d, %q", code, f.by)
	}
	for i, out := range ends {
		_, _ = out.Write([]byte("dy"))
		_ = out.Close()
		<-done[i]
	}
	f.left(t)
}

// A body whose length is known need not be read beyond it.
func TestPlaceAfterBody(t *testing.T) {
	f := newLimited(Limits{Write: 1, WriteShare: 1})
	<-f.start(context.Background(), "ann", "POST", "/version", strings.NewReader("1234"), httptest.NewRecorder(), func(_ http.ResponseWriter, r *http.Request) {
		running := func() int { return f.Flows.Seats.Runs(seats.Writing) }
		if n := running(); n != 1 {
			t.Errorf("%d run before the body is read", n)
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 2)); err != nil || running() != 0 {
			t.Errorf("%v, %d run while it is", err, running())
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 2)); err != nil || running() != 1 {
			t.Errorf("%v, %d run afterwards", err, running())
		}
	})
}

// TestBytesOfLargeBodies: bodies that need more than the default of --max-object-bytes have a limit for all users, which small
// bodies do not meet.
func TestBytesOfLargeBodies(t *testing.T) {
	sizes, err := budget.SizesOf(2 << 20)
	if err != nil {
		t.Fatal(err)
	}
	f := newLimited(Limits{Write: 100, WriteShare: 100, Sizes: sizes})
	hold := make(chan struct{})
	var done []chan struct{}
	users := int(sizes.Bodies() / sizes.Body())
	for i := range users {
		in, out := io.Pipe() // of unknown length, so it counts as the largest body
		begun := make(chan struct{})
		done = append(done, f.start(context.Background(), fmt.Sprint("user", i), "POST", "/version", in, httptest.NewRecorder(), func(http.ResponseWriter, *http.Request) {
			close(begun)
			<-hold
		}))
		defer out.Close()
		<-begun
	}
	large := strings.Repeat("x", budget.DefaultBody+1)
	if code := f.ask("other", "POST", "/version", large); users != 4 || code != 429 || f.by[0] != limitLarge {
		t.Errorf("one body too many after %d: %d, %q", users, code, f.by)
	}
	if code := f.ask("other", "POST", "/version", large[1:]); code != 200 {
		t.Errorf("a body that is not large: %d", code)
	}
	close(hold)
	for _, d := range done {
		<-d
	}
	if code := f.ask("other", "POST", "/version", large); code != 200 {
		t.Errorf("afterwards: %d", code)
	}
	f.left(t)
}

func TestBytesOfBodies(t *testing.T) {
	f := newLimited(Limits{Write: 100, WriteShare: 100})
	hold := make(chan struct{})
	var done []chan struct{}
	for range bodiesOfUser / budget.DefaultBody {
		in, out := io.Pipe() // of unknown length
		begun := make(chan struct{})
		done = append(done, f.start(context.Background(), "mallory", "POST", "/version", in, httptest.NewRecorder(), func(http.ResponseWriter, *http.Request) {
			close(begun)
			<-hold
		}))
		defer out.Close()
		<-begun
	}
	if code := f.ask("mallory", "POST", "/version", strings.Repeat("x", 2<<20)); code != 429 || f.by[0] != limitBodies {
		t.Errorf("too many bytes: %d, %q", code, f.by)
	}
	if code := f.ask("mallory", "GET", "/version", ""); code != 200 {
		t.Errorf("no body: %d", code)
	}
	if code := f.ask("bob", "POST", "/version", strings.Repeat("x", 2<<20)); code != 200 {
		t.Errorf("another user: %d", code)
	}
	close(hold)
	for _, d := range done {
		<-d
	}
}

func TestShares(t *testing.T) {
	f := newLimited(Limits{Read: 8, Write: 4})
	hold, begun := make(chan struct{}), make(chan struct{})
	wait := func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-hold
	}
	var done []chan struct{}
	for range 2 {
		done = append(done, f.start(context.Background(), "mallory", "GET", "/version", nil, httptest.NewRecorder(), wait))
		<-begun
	}
	if code := f.ask("mallory", "GET", "/version", ""); code != 429 || f.by[0] != limitShare {
		t.Errorf("more than a quarter: %d, %q", code, f.by)
	}
	if code := f.ask("bob", "GET", "/version", ""); code != 200 {
		t.Errorf("another user: %d", code)
	}
	close(hold)
	for _, d := range done {
		<-d
	}
}

// Anonymous clients are distinguished by their connections.
func TestSharesOfStrangers(t *testing.T) {
	user := func(address string, id *authx.Identity) string {
		r := httptest.NewRequest("GET", "/version", nil)
		r.RemoteAddr = address
		return userOf(&request.Scope{User: id}, r)
	}
	stranger := &authx.Identity{Name: authx.Anonymous, Groups: []string{authx.GroupUnauthenticated}}
	if user("1.2.3.4:5", stranger) == user("1.2.3.4:6", stranger) || user("1.2.3.4:5", nil) == user("1.2.3.4:6", nil) {
		t.Error("two connections share")
	}
	known := &authx.Identity{Name: "ann", Groups: []string{"system:authenticated"}}
	if user("1.2.3.4:5", known) != user("1.2.3.4:6", known) {
		t.Error("connections of one user do not share")
	}
}

func TestPlaceThatNeverComes(t *testing.T) {
	f := newLimited(Limits{Read: 1, ReadShare: 1})
	c := newClosed()
	ctx, cancel := context.WithCancel(context.Background())
	var late error
	first := f.start(ctx, "mallory", "GET", "/version", nil, c, func(w http.ResponseWriter, _ *http.Request) { _, late = io.WriteString(w, "a") })
	<-c.begun
	f.clock.Add(int64(seats.Unmoved))
	inside, leave := make(chan struct{}), make(chan struct{})
	second := f.start(context.Background(), "bob", "GET", "/version", nil, httptest.NewRecorder(), func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-leave
	})
	<-inside
	close(c.opens)
	cancel()
	<-first
	if !errors.Is(late, context.Canceled) {
		t.Errorf("the write ended with %v", late)
	}
	close(leave)
	<-second
	f.left(t)
}

func TestLasting(t *testing.T) {
	f := newLimited(Limits{Watches: 4, UserWatches: 3, Connects: 2, UserConnects: 1})
	hold, begun := make(chan struct{}), make(chan struct{})
	var done []chan struct{}
	watch := func(user, target string) {
		t.Helper()
		done = append(done, f.start(context.Background(), user, "GET", target, nil, httptest.NewRecorder(), func(http.ResponseWriter, *http.Request) {
			begun <- struct{}{}
			<-hold
		}))
		<-begun
	}
	for range 3 {
		watch("mallory", "/api/v1/pods?watch=1")
	}
	if code := f.ask("mallory", "GET", "/api/v1/pods?watch=1", ""); code != 429 {
		t.Errorf("one too many of a user: %d", code)
	}
	watch("bob", "/api/v1/pods?watch=1")
	if code := f.ask("cid", "GET", "/api/v1/pods?watch=1", ""); code != 429 {
		t.Errorf("one too many of all: %d", code)
	}
	watch("mallory", "/api/v1/namespaces/a/pods/p/log?follow=true")
	for _, path := range []string{"pods/p/exec", "pods/p/attach", "pods/p/portforward", "pods/p/proxy", "services/s/proxy/x", "pods/p/log?follow=true", "pods/p/log"} {
		if code := f.ask("mallory", "GET", "/api/v1/namespaces/a/"+path, ""); code != 429 {
			t.Errorf("%s, one too many of a user: %d", path, code)
		}
	}
	if got := fmt.Sprint(f.by[:3]); got != "[watches watches connects]" {
		t.Error(got)
	}
	close(hold)
	for _, d := range done {
		<-d
	}
	if f.watches.open != 0 || len(f.watches.users) != 0 || f.connects.open != 0 || len(f.connects.users) != 0 {
		t.Error("something is left")
	}
}

// Seats for notifying watchers are not kept after a write that was refused or failed: otherwise users without
// the right to write could take them from others.
func TestFailedWritesKeepNoSeats(t *testing.T) {
	for code, then := range map[int]int{http.StatusOK: http.StatusTooManyRequests, http.StatusForbidden: http.StatusOK, http.StatusConflict: http.StatusOK} {
		f := newLimited(Limits{Write: 1})
		w := httptest.NewRecorder()
		Scope(time.Now)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request.From(r.Context()).User = &authx.Identity{Name: "mallory"}
			a := f.InFlight.ask(w, r, nil)
			a.Extra, a.ExtraFor = 1, time.Hour
			if err := f.enter(w, a); err != nil {
				t.Fatal(err)
			}
			a.WriteHeader(code)
			f.leave(a)
		})).ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/namespaces/x/pods", nil))
		if got := f.ask("bob", "POST", "/api/v1/namespaces/x/pods", ""); got != then {
			t.Errorf("after a write with %d: %d, want %d", code, got, then)
		}
	}
}

// TestShortAnswers: the queue of long answers counts those that did not wait in it.
func TestShortAnswers(t *testing.T) {
	f := newLimited(Limits{Read: 4})
	f.Turns = answers.NewTurnScheduler(4)
	<-f.start(t.Context(), "a", "GET", "/api/v1/pods", nil, httptest.NewRecorder(), func(w http.ResponseWriter, r *http.Request) {
		request.From(r.Context()).Long = true
		say(w, r)
	})
	if n := f.Turns.Concurrency(); n != 4 {
		t.Errorf("%d turns after a long answer", n)
	}
	f.ask("a", "GET", "/api/v1/pods", "")
	if n := f.Turns.Concurrency(); n != 2 {
		t.Errorf("%d turns after a short answer", n)
	}
}

// TestOutlivingIsCounted: a watch that goes on without its handler counts until it ends.
func TestOutlivingIsCounted(t *testing.T) {
	f := newLimited(Limits{Watches: 4, UserWatches: 1})
	var scope *request.Scope
	begin := func() int {
		w := httptest.NewRecorder()
		<-f.start(context.Background(), "mallory", "GET", "/api/v1/pods?watch=1", nil, w, func(_ http.ResponseWriter, r *http.Request) {
			scope = request.From(r.Context())
			scope.Detach(func(any) {})
		})
		return w.Code
	}
	for range 3 {
		if code := begin(); code != 200 {
			t.Fatal(code)
		}
		if code := begin(); code != 429 {
			t.Errorf("one too many: %d", code)
		}
		scope.Ended(nil)
		if f.watches.open != 0 || len(f.watches.users) != 0 {
			t.Error("something is left")
		}
	}
}
