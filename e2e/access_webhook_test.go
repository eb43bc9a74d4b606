package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// tokenHook is a webhook for tokens whose names select its behavior.
type tokenHook struct {
	*httptest.Server
	kubeconfig string
	stop       chan struct{} // ends what stalls
	revoked    atomic.Bool   // token "revocable" is no good any more
	leaked     atomic.Int32  // questions that came where a redirect led
}

// webhookKubeconfig writes a kubeconfig of a TLS server of a test.
func webhookKubeconfig(t testing.TB, dir string, srv *httptest.Server) string {
	t.Helper()
	ca, file := filepath.Join(dir, filepath.Base(t.Name())+"-hook.crt"), filepath.Join(dir, filepath.Base(t.Name())+"-hook.kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority":%q}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`, srv.URL, ca)
	for path, data := range map[string][]byte{ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), file: []byte(text)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func startTokenHook(t testing.TB, dir string) *tokenHook {
	h := &tokenHook{stop: make(chan struct{})}
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(h.stop) })
	h.kubeconfig = webhookKubeconfig(t, dir, h.Server)
	return h
}

func (h *tokenHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/elsewhere" {
		h.leaked.Add(1)
	}
	var review struct{ Spec struct{ Token string } }
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := func(version, status string) {
		fmt.Fprintf(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/%s","status":%s}`, version, status)
	}
	const yes = `{"authenticated":true,"user":{"username":"hooked","groups":["crew"]}}`
	switch review.Spec.Token {
	case "good":
		answer("v1", yes)
	case "nobody":
		answer("v1", `{"authenticated":true,"user":{"groups":["system:masters"]}}`)
	case "revocable":
		if h.revoked.Load() {
			answer("v1", `{"authenticated":false}`)
			return
		}
		answer("v1", yes)
	case "stall":
		select {
		case <-h.stop:
		case <-r.Context().Done():
		}
	case "drip":
		for range 600 {
			select {
			case <-h.stop:
				return
			case <-r.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
			}
		}
	case "for another":
		answer("v1", `{"authenticated":true,"user":{"username":"hooked"},"audiences":["vault"]}`)
	case "another version":
		answer("v1beta1", yes)
	case "another kind":
		fmt.Fprint(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true,"authenticated":true,"user":{"username":"hooked"}}}`)
	case "a list":
		fmt.Fprint(w, `[`+yes+`]`)
	case "words":
		answer("v1", `{"authenticated":"true","user":{"username":"hooked"}}`)
	case "cut off":
		w.Header().Set("Content-Length", "1000")
		answer("v1", yes)
	case "endless":
		answer("v1", `{"authenticated":true,"user":{"username":"`+strings.Repeat("x", 8<<20)+`"}}`)
	case "moved":
		w.Header().Set("Location", h.URL+"/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "good, but refused":
		w.WriteHeader(http.StatusForbidden)
		answer("v1", yes)
	case "broken":
		panic(http.ErrAbortHandler)
	default:
		answer("v1", `{"authenticated":false,"error":"never heard of it"}`)
	}
}

func attackTokenHook(t *testing.T, a *access) {
	if got := a.who(t, call{token: "good"}); got != "hooked crew" {
		t.Fatalf("a good token: taken as %s", got)
	}
	for _, token := range []string{
		"for%20another", "another version", "another kind", "a list", "words", "cut off", "endless", "moved", "good, but refused", "broken", "unknown", "nobody",
	} {
		token = strings.ReplaceAll(token, "%20", " ")
		// A token has no blanks in it: the hook knows these as they are sent by a review.
		review := fmt.Sprintf(`{"spec":{"token":%q}}`, strings.ReplaceAll(token, " ", " "))
		answer := a.admin(t, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
		if strings.Contains(answer, `"authenticated":true`) {
			t.Errorf("%s: %s", token, answer)
		}
	}
	if n := a.hook.leaked.Load(); n > 0 {
		t.Errorf("%d tokens went where a redirect led", n)
	}
	if got := a.who(t, call{token: "nobody"}); got != "401" {
		t.Errorf("a token that is good for nobody: taken as %q", got)
	}
	eventually(t, "a good token", func() bool { return a.who(t, call{token: "revocable"}) == "hooked crew" })
	a.hook.revoked.Store(true)
	time.Sleep(time.Second) // how long answers are kept here
	eventually(t, "a token that the service does not know any more", func() bool { return a.who(t, call{token: "revocable"}) == "401" })
	var stalled sync.WaitGroup
	var over atomic.Int32
	answered := 0
	for _, token := range []string{"stall", "drip"} {
		for range 10 {
			stalled.Go(func() {
				defer over.Add(1)
				if code, _ := a.do(t, call{path: "/version?timeout=10s", token: token}); code != http.StatusUnauthorized && code != http.StatusGatewayTimeout {
					t.Errorf("%s: %d", token, code)
				}
			})
		}
	}
	for range 20 { // others are not delayed by it
		if code, _ := a.do(t, call{path: "/api/v1/namespaces", token: harness.AdminToken}); code != http.StatusOK {
			t.Errorf("beside requests that wait for the service: %d", code)
		}
		if answered++; answered == 1 && over.Load() == 20 {
			t.Error("others are answered after those that wait for the service")
		}
	}
	stalled.Wait()
}
