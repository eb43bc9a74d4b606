package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestTokenFlood: the server checks only a few tokens of one connection with the token webhook
// concurrently. It answers the other requests with Retry-After; other connections and tokens of
// other authenticators do not wait.
func TestTokenFlood(t *testing.T) {
	t.Parallel()
	const places, share, flood = 32, 2, 60
	var asked atomic.Int64
	free := make(chan struct{})
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-free
		fmt.Fprint(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"hooked"}}}`)
	}))
	defer hook.Close()
	a := startAuthorization(t, "--authentication-token-webhook-version=v1", "--authentication-token-webhook-max-inflight", fmt.Sprint(places),
		"--authentication-token-webhook-config-file", webhookKubeconfig(t, t.TempDir(), hook))
	// A client of HTTP/2 has one connection.
	client, err := a.s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	get := func(token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.s.URL+"/version", nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		if (resp.Header.Get("Retry-After") != "") != (resp.StatusCode == http.StatusTooManyRequests) {
			t.Errorf("%d with Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
		}
		return resp.StatusCode
	}
	if code := get(harness.AdminToken); code != http.StatusOK { // the connection still works
		t.Fatal(code)
	}
	var wg sync.WaitGroup
	answers := make(chan int, flood)
	for i := range flood {
		wg.Go(func() { answers <- get(fmt.Sprintf("token-%d", i)) })
	}
	for range flood - share {
		if code := <-answers; code != http.StatusTooManyRequests {
			t.Fatalf("one too many: %d", code)
		}
	}
	if code := get(harness.AdminToken); code != http.StatusOK {
		t.Errorf("a token that needs no service, by the same connection: %d", code)
	}
	for range share { // by connections of their own: one more each
		wg.Go(func() {
			if got := a.who(t, call{token: "patient"}); got != "hooked" {
				t.Errorf("by another connection: %s", got)
			}
		})
	}
	mustCome(t, "questions of another connection", func() bool { return asked.Load() == share+1 }) // one token, one question
	close(free)
	wg.Wait()
	for range share {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("one that had a place: %d", code)
		}
	}
	if n := asked.Load(); n != share+1 {
		t.Errorf("the service was asked %d times", n)
	}
}
