package tokenwebhook

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/remote/remotetest"
)

// service sends the results of answer, and counts the requests.
type service struct {
	answer func(r *authenticationv1.TokenReview) (code int, body string)
	asked  int
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked++
	review := &authenticationv1.TokenReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || r.URL.RawQuery != "timeout=30s" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	code, body := s.answer(review)
	w.WriteHeader(code)
	fmt.Fprint(w, body)
}

func start(t *testing.T, s *service, version string) *Authenticator {
	t.Helper()
	srv := httptest.NewTLSServer(s)
	t.Cleanup(srv.Close)
	a, err := New(Config{Kubeconfig: remotetest.Kubeconfig(t, srv, "/review"), Version: version, CacheTTL: time.Minute, Audiences: []string{"api"}})
	if err != nil {
		t.Fatal(err)
	}
	a.service.Pause = time.Millisecond
	return a
}

func status(version, status string) func(*authenticationv1.TokenReview) (int, string) {
	return func(*authenticationv1.TokenReview) (int, string) {
		return 200, `{"apiVersion":"authentication.k8s.io/` + version + `","kind":"TokenReview","status":` + status + `}`
	}
}

func TestAnswers(t *testing.T) {
	plain := func(code int, body string) func(*authenticationv1.TokenReview) (int, string) {
		return func(*authenticationv1.TokenReview) (int, string) { return code, body }
	}
	for _, tc := range []struct {
		name   string
		answer func(*authenticationv1.TokenReview) (int, string)
		want   []string // audiences asked for
		user   string
		err    string
		asked  int // by two uses of the token
	}{
		{"yes", status("v1", `{"authenticated":true,"user":{"username":"jane"}}`), nil, "jane", "", 1},
		{"yes, whatever the error", status("v1", `{"authenticated":true,"user":{"username":"jane"},"error":"x"}`), nil, "jane", "", 1},
		{"no", status("v1", `{}`), nil, "", "", 1},
		{"no, and why", status("v1", `{"error":"why"}`), nil, "", "why", 2},
		{"for the API alone", status("v1", `{"authenticated":true,"user":{"username":"jane"}}`), []string{"vault"}, "", "", 1},
		{"for another", status("v1", `{"authenticated":true,"user":{"username":"jane"},"audiences":["vault"]}`), []string{"vault", "q"}, "jane", "", 1},
		{"another version", status("v1beta1", `{"authenticated":true,"user":{"username":"jane"}}`), nil, "", "converting (v1beta1.TokenReview) to (v1.TokenReview): unknown conversion", 2},
		{"yes, and to nobody", status("v1", `{"authenticated":true,"user":{"groups":["system:masters"]}}`), nil, "", "names no user", 2},
		{"in trouble", plain(503, ""), nil, "", "currently unable", 10},
		{"unauthorized", plain(401, ""), nil, "", "the server has asked for the client to provide credentials", 2},
		{"nonsense", plain(200, "<html>"), nil, "", "json parse error", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &service{answer: tc.answer}
			a := start(t, s, "v1")
			for range 2 {
				who, mine, err := a.AuthenticateToken(t.Context(), "t", tc.want)
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || who != nil) {
					t.Fatalf("%v %v", who, err)
				}
				if tc.user != "" && (!mine || who.Identity.Name != tc.user) || tc.user == "" && tc.err == "" && mine {
					t.Fatalf("%v %v", who, mine)
				}
			}
			if s.asked != tc.asked {
				t.Fatalf("asked %d times, want %d", s.asked, tc.asked)
			}
		})
	}
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func TestForgetting(t *testing.T) {
	s := &service{answer: status("v1beta1", `{"authenticated":true,"user":{"username":"jane"}}`)}
	a := start(t, s, "v1beta1")
	clock := &clock{time.Now()}
	a.answers = cache.NewLRUExpireCacheWithClock(remembered, clock)
	for i, after := range []time.Duration{0, 30 * time.Second, 31 * time.Second} {
		clock.now = clock.now.Add(after)
		if _, _, err := a.AuthenticateToken(t.Context(), "t", nil); err != nil {
			t.Fatal(err)
		}
		if want := 1 + i/2; s.asked != want {
			t.Fatalf("asked %d times, want %d", s.asked, want)
		}
	}
	if _, _, _ = a.AuthenticateToken(t.Context(), "another", nil); s.asked != 3 {
		t.Fatal("an answer was taken for another token's")
	}
}

// TestTokensEnd: an answer about a token with an expiry is not cached
// beyond it.
func TestTokensEnd(t *testing.T) {
	s := &service{answer: status("v1", `{"authenticated":true,"user":{"username":"jane"}}`)}
	a := start(t, s, "v1")
	clock := &clock{time.Now()}
	a.answers = cache.NewLRUExpireCacheWithClock(remembered, clock)
	claims := fmt.Sprintf(`{"exp":%d}`, time.Now().Add(20*time.Second).Unix())
	token := "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
	for i, after := range []time.Duration{0, 10 * time.Second, 10 * time.Second} {
		clock.now = clock.now.Add(after)
		if _, _, err := a.AuthenticateToken(t.Context(), token, nil); err != nil {
			t.Fatal(err)
		}
		if want := 1 + i/2; s.asked != want {
			t.Fatalf("asked %d times, want %d", s.asked, want)
		}
	}
	for _, token := range []string{"opaque", "a.b.c", "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1e300}`)) + ".s"} {
		if left := remaining(token, time.Now()); left < time.Hour {
			t.Errorf("%q lives %s", token, left)
		}
	}
	if left := remaining("h."+base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1}`))+".s", time.Now()); left > 0 {
		t.Errorf("a token that has ended lives %s", left)
	}
}

// TestStillValid: a token is valid as long as the service accepts it for the same user in the same groups. A service that fails, or
// strangers who fill the gate, do not change that.
func TestStillValid(t *testing.T) {
	const jane = `{"authenticated":true,"user":{"username":"jane","uid":"1","groups":["a","b"]}}`
	expired := "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1}`)) + ".s"
	for name, tc := range map[string]struct {
		token, status string // of a later answer; "": the service fails
		want          bool
	}{
		"accepted":             {"t", jane, true},
		"further groups":       {"t", `{"authenticated":true,"user":{"username":"jane","uid":"1","groups":["c","b","a"],"extra":{"x":["y"]}}}`, true},
		"a group was taken":    {"t", `{"authenticated":true,"user":{"username":"jane","uid":"1","groups":["a","c"]}}`, false},
		"another user":         {"t", `{"authenticated":true,"user":{"username":"john","uid":"1","groups":["a","b"]}}`, false},
		"another UID":          {"t", `{"authenticated":true,"user":{"username":"jane","uid":"2","groups":["a","b"]}}`, false},
		"no name":              {"t", `{"authenticated":true,"user":{"groups":["a","b"]}}`, false},
		"withdrawn":            {"t", `{}`, false},
		"withdrawn, and why":   {"t", `{"error":"it was withdrawn"}`, false},
		"for others only":      {"t", `{"authenticated":true,"user":{"username":"jane","uid":"1","groups":["a","b"]},"audiences":["vault"]}`, false},
		"the service fails":    {"t", "", true},
		"refused after expiry": {expired, `{"error":"it has expired"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{answer: status("v1", jane)}
			a := start(t, s, "v1")
			clock := &clock{time.Now()}
			a.answers = cache.NewLRUExpireCacheWithClock(remembered, clock)
			a.gate = authx.NewGate(authx.GateConfig{What: "the webhook", All: 1})
			who, _, err := a.AuthenticateToken(t.Context(), tc.token, nil)
			if err != nil || who.StillValid == nil {
				t.Fatalf("%v %v", who, err)
			}
			leave, err := a.gate.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
			s.answer = func(*authenticationv1.TokenReview) (int, string) { return http.StatusServiceUnavailable, "" }
			if tc.status != "" {
				s.answer = status("v1", tc.status)
			}
			if tc.token == "t" && (!who.StillValid(t.Context()) || s.asked != 1) {
				t.Errorf("it is not valid while the answer is cached, or the service was called %d times", s.asked)
			}
			clock.now = clock.now.Add(2 * time.Minute)
			if got := who.StillValid(t.Context()); got != tc.want || s.asked == 1 {
				t.Errorf("valid: %t, after %d calls", got, s.asked)
			}
		})
	}
}
