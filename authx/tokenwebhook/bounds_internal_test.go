package tokenwebhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/remote/remotetest"
)

// slow is a service that answers when it is let go, and knows how many wait.
type slow struct {
	inside, asked atomic.Int64
	entered       chan struct{}
	free          chan struct{}
}

func (s *slow) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.asked.Add(1)
	s.inside.Add(1)
	defer s.inside.Add(-1)
	s.entered <- struct{}{}
	<-s.free
	fmt.Fprint(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"jane"}}}`)
}

type sourceKey struct{}

// crowd returns an Authenticator in front of a slow service, behind a Gate for 4, 2 of them
// for each source.
func crowd(t *testing.T) (*Authenticator, *slow, *atomic.Int64) {
	t.Helper()
	s := &slow{entered: make(chan struct{}, 100), free: make(chan struct{})}
	srv := httptest.NewTLSServer(s)
	t.Cleanup(srv.Close)
	refused := &atomic.Int64{}
	gate := authx.NewGate(authx.GateConfig{
		What: "the webhook", All: 4, Each: 2,
		Source:  func(ctx context.Context) any { return ctx.Value(sourceKey{}) },
		Refused: func() { refused.Add(1) },
	})
	a, err := New(Config{Kubeconfig: remotetest.Kubeconfig(t, srv, "/review"), Version: "v1", Audiences: []string{"api"}, Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	return a, s, refused
}

// TestFlood: of many different tokens few are sent to the webhook at once, one source takes
// few of the places, and a request without a place gets an error about that, not one about its token.
func TestFlood(t *testing.T) {
	a, s, refused := crowd(t)
	var wg sync.WaitGroup
	ask := func(source, token string) {
		wg.Go(func() {
			who, _, err := a.AuthenticateToken(context.WithValue(t.Context(), sourceKey{}, source), token, nil)
			if err != nil || who.Identity.Name != "jane" {
				t.Errorf("%s: %v %v", token, who, err)
			}
		})
	}
	full := func(source string) {
		t.Helper()
		for i := range 50 {
			_, mine, err := a.AuthenticateToken(context.WithValue(t.Context(), sourceKey{}, source), fmt.Sprintf("%s%d", source, i), nil)
			if !mine || !errors.Is(err, authx.ErrBusy) {
				t.Fatalf("%s: %v %v", source, mine, err)
			}
		}
	}
	for i := range 2 {
		ask("a", fmt.Sprintf("a token %d", i))
		<-s.entered
	}
	full("a")
	for i := range 2 {
		ask("b", fmt.Sprintf("b token %d", i))
		<-s.entered
	}
	full("b")
	full("c")
	if n := s.inside.Load(); n != 4 || refused.Load() != 150 {
		t.Errorf("%d questions under way, %d refused", n, refused.Load())
	}
	close(s.free)
	wg.Wait()
	if n := s.asked.Load(); n != 4 || len(a.asked) != 0 {
		t.Errorf("%d questions, %d left", n, len(a.asked))
	}
	if _, _, err := a.AuthenticateToken(context.WithValue(t.Context(), sourceKey{}, "c"), "later", nil); err != nil {
		t.Errorf("places are not given back: %v", err)
	}
}

// TestOneQuestion: requests with the same token share a call, and if its caller is canceled another one
// calls.
func TestOneQuestion(t *testing.T) {
	a, s, _ := crowd(t)
	first, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, _, err := a.AuthenticateToken(first, "token", nil)
		gone <- err
	}()
	<-s.entered
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if who, _, err := a.AuthenticateToken(t.Context(), "token", nil); err != nil || who.Identity.Name != "jane" {
				t.Errorf("%v %v", who, err)
			}
		})
	}
	leave()
	if err := <-gone; err == nil {
		t.Error("who left has an answer")
	}
	<-s.entered
	close(s.free)
	wg.Wait()
	// A caller that comes after the second answer calls again: nothing is cached here.
	if n := s.asked.Load(); n < 2 || n > 21 {
		t.Errorf("%d questions", n)
	}
}

// TestComplaint: a service that does not work is complained of once, and the token is in
// no error, even if the service puts it there.
func TestComplaint(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"never heard of secret-token"}`)
	}))
	defer srv.Close()
	var failures []string
	a, err := New(Config{Kubeconfig: remotetest.Kubeconfig(t, srv, "/"), Version: "v1", Failed: func(err error) { failures = append(failures, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _, err := a.AuthenticateToken(t.Context(), "secret-token", nil)
		if err == nil || strings.Contains(err.Error(), "secret-token") || !strings.Contains(err.Error(), "never heard of [token]") {
			t.Errorf("%v", err)
		}
	}
	if len(failures) != 1 || strings.Contains(failures[0], "secret-token") {
		t.Errorf("%q", failures)
	}
}
