package filters_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/filters"
)

// TestImpersonationIsBounded: however many requests impersonate, a slow authorizer is called for few of them
// at once; requests in progress, and requests without impersonation, continue.
func TestImpersonationIsBounded(t *testing.T) {
	const places = 256
	entered, free := make(chan struct{}, 2*places), make(chan struct{})
	slow := authorizer(func(*authx.Attributes) (authx.Decision, string, error) {
		entered <- struct{}{}
		<-free
		return authx.Allow, "", nil
	})
	filter := filters.Impersonate(slow, filters.Impersonation{}, quiet, fail)
	ask := func(headers http.Header) int {
		r := httptest.NewRequest("GET", "/version", nil)
		r.Header = headers
		return serve(r, ok, as(&authx.Identity{Name: "actor"}), filter).Code
	}
	bob := func() http.Header { return http.Header{"Impersonate-User": {"bob"}} }
	var wg sync.WaitGroup
	for range places {
		wg.Go(func() {
			if code := ask(bob()); code != http.StatusOK {
				t.Errorf("one that has a place: %d", code)
			}
		})
		<-entered
	}
	for range 10 {
		if code := ask(bob()); code != http.StatusTooManyRequests {
			t.Fatalf("one too many: %d", code)
		}
	}
	if code := ask(http.Header{}); code != http.StatusOK {
		t.Errorf("one that impersonates nobody: %d", code)
	}
	close(free)
	wg.Wait()
	if code := ask(bob()); code != http.StatusOK || len(entered) != 1 {
		t.Errorf("places are not given back: %d, %d questions", code, len(entered))
	}
}
