package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx/remote/remotetest"
)

var review = authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview")

func service(t *testing.T, timeout time.Duration, h http.HandlerFunc) (*Service, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	s, err := New(remotetest.Kubeconfig(t, srv, "/ask"), timeout, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Pause = time.Millisecond
	return s, asked
}

func TestAsk(t *testing.T) {
	const good = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`
	for _, tc := range []struct {
		name    string
		code    int
		headers map[string]string
		body    string
		err     string // "": the answer is taken
		asked   int32
	}{
		{name: "good", code: 200, body: good, asked: 1},
		{name: "created", code: 201, body: good, asked: 1},
		{name: "plain", code: 200, headers: map[string]string{"Content-Type": "text/plain"}, body: good, asked: 1},
		{name: "neither kind nor version", code: 200, body: `{"status":{"allowed":true}}`, asked: 1},
		{name: "empty", code: 200, err: "0-length response with status code: 200 and content type: ", asked: 1},
		{name: "no JSON", code: 200, body: "<html>", err: "couldn't get version/kind; json parse error: invalid character '<'", asked: 1},
		{name: "half", code: 200, body: good[:40], err: "couldn't get version/kind; json parse error: unexpected end of JSON input", asked: 1},
		{name: "another version", code: 200, body: strings.Replace(good, "/v1", "/v1beta1", 1), err: "converting (v1beta1.SubjectAccessReview) to (v1.SubjectAccessReview): unknown conversion", asked: 1},
		{name: "another kind", code: 200, body: strings.Replace(good, "SubjectA", "A", 1), err: `no kind "AccessReview" is registered for version "authorization.k8s.io/v1"`, asked: 1},
		{name: "wrong types", code: 200, body: `{"status":{"allowed":"yes"}}`, err: "cannot unmarshal string into Go struct field", asked: 1},
		{name: "a status", code: 200, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no good"}`, err: "no good", asked: 1},
		{name: "a status without words", code: 200, body: `{"kind":"Status","apiVersion":"v1"}`, err: "the answer is a Status without a message", asked: 1},
		{name: "a refusal without words", code: 403, headers: map[string]string{"Content-Type": "application/json"}, body: `{"kind":"Status","apiVersion":"v1","status":"Failure"}`, err: "unknown", asked: 1},
		{name: "a refusal as a status", code: 422, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no good"}`, err: "no good", asked: 1},
		{name: "unauthorized", code: 401, err: "the server has asked for the client to provide credentials", asked: 1},
		{name: "not found", code: 404, body: "gone", err: "the server could not find the requested resource", asked: 1},
		{name: "broken", code: 500, body: "oops\n", err: `an error on the server ("oops") has prevented the request from succeeding`, asked: 5},
		{name: "bad gateway", code: 502, headers: map[string]string{"Content-Type": "application/json"}, body: "{}", err: `an error on the server ("unknown") has prevented the request from succeeding`, asked: 5},
		{name: "busy", code: 429, err: "too many requests", asked: 5},
		{name: "later", code: 409, headers: map[string]string{"Retry-After": "1"}, err: "the server reported a conflict", asked: 5},
		{name: "moved", code: 307, headers: map[string]string{"Location": "/ask?timeout=30s"}, body: good, err: "status code 307", asked: 1},
		{name: "endless", code: 200, body: strings.Repeat("x", maxAnswer+1), err: "longer than", asked: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, asked := service(t, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.String() != "/ask?timeout=30s" || r.Header.Get("Content-Type") != "application/json" ||
					r.Header.Get("Authorization") != "Bearer of the kubeconfig" {
					t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
				}
				for k, v := range tc.headers {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tc.code)
				fmt.Fprint(w, tc.body)
			})
			var seen int32
			s.Observe = func(_ context.Context, _ time.Duration, err error) {
				seen++
				if (err == nil) != (tc.err == "") {
					t.Error(err)
				}
			}
			var answer authorizationv1.SubjectAccessReview
			err := s.Ask(t.Context(), []byte("{}"), review, &answer)
			if tc.err == "" && (err != nil || !answer.Status.Allowed) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%v, want %s", err, tc.err)
			}
			if st := apierrors.APIStatus(nil); errors.As(err, &st) {
				t.Fatalf("an error that the server could take for its own: %v", st.Status())
			}
			if asked.Load() != tc.asked || seen != tc.asked {
				t.Fatalf("asked %d times, saw %d, want %d", asked.Load(), seen, tc.asked)
			}
		})
	}
}

// TestRecovery: the answer of a service that recovers during the retries counts.
func TestRecovery(t *testing.T) {
	left := 3
	s, _ := service(t, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		if left--; left > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"status":{"allowed":true}}`)
	})
	var answer authorizationv1.SubjectAccessReview
	if err := s.Ask(t.Context(), nil, review, &answer); err != nil || !answer.Status.Allowed {
		t.Fatal(err)
	}
}

func TestStall(t *testing.T) {
	release := make(chan struct{})
	s, asked := service(t, 20*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	err := s.Ask(t.Context(), nil, review, &authorizationv1.SubjectAccessReview{})
	if err == nil || !IsTimeout(err) || asked.Load() > 1 {
		t.Fatal(err, asked.Load())
	}
}

// TestGone: the end of ctx ends the pauses, and the error has the reason of the pause.
func TestGone(t *testing.T) {
	ctx, gone := context.WithCancel(t.Context())
	s, asked := service(t, 30*time.Second, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	s.Pause = time.Hour
	s.Observe = func(context.Context, time.Duration, error) { gone() }
	err := s.Ask(ctx, nil, review, &authorizationv1.SubjectAccessReview{})
	if err == nil || !strings.Contains(err.Error(), "an error on the server") || asked.Load() != 1 {
		t.Fatal(err, asked.Load())
	}
}

func TestAnotherAuthority(t *testing.T) {
	s, _ := service(t, 30*time.Second, func(http.ResponseWriter, *http.Request) {})
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, []byte(remotetest.Text(s.URL().String(), "")), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger, err := New(file, 30*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Ask(t.Context(), nil, review, &authorizationv1.SubjectAccessReview{}); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Fatal(err)
	}
	if _, err := New(filepath.Join(dir, "none"), 30*time.Second, nil); err == nil {
		t.Fatal("a file that is not there")
	}
}
