package verbs_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/server/admission"
)

// curious is an admission plugin that looks at all of what is updated, if it is told to.
type curious struct{ looks bool }

func (*curious) Name() string                        { return "Curious" }
func (*curious) Handles(op admission.Operation) bool { return op == admission.Update }

func (p *curious) Validate(_ context.Context, a *admission.Attributes) error {
	if !p.looks {
		return nil
	}
	return a.Whole()
}

// TestTurnsOfStatusPatches: a patch of the status of a large definition waits for nobody, but for its turn
// where all of the definition is decoded for it after all: it is refused, or somebody looks.
func TestTurnsOfStatusPatches(t *testing.T) {
	p := &curious{}
	f := newFixture(t, p)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // several have a turn at once
	f.h.Gate = budget.NewGate()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	d, err := operators.New(1).At(1)
	if err != nil {
		t.Fatal(err)
	}
	f.want(http.StatusCreated, "POST", path, string(d.Body))
	patch := func(body string, waits bool) int {
		ctx := t.Context()
		if waits {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPatch, path+"/"+d.Name+"/status", strings.NewReader(body))
		r.Header.Set("Content-Type", merge)
		return f.serve(r).Code
	}
	const right, wrong = `{"status":{"storedVersions":["v1"]}}`, `{"status":{"storedVersions":1}}`
	for _, c := range []struct {
		name, body  string
		looks, full bool
		want        int
	}{
		{"one that is refused", wrong, false, false, http.StatusUnprocessableEntity},
		{"one that is looked at", right, true, false, http.StatusOK},
		{"one that is refused, of many", wrong, false, true, http.StatusGatewayTimeout},
		{"one that is looked at, of many", right, true, true, http.StatusGatewayTimeout},
		{"one that spares the schemas, of many", right, false, true, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.looks = c.looks
			for _, user := range []string{"a", "b"} {
				if c.full { // there is no room left
					leave, err := f.h.Gate.Enter(t.Context(), user, budget.Share)
					if err != nil {
						t.Fatal(err)
					}
					defer leave()
				}
			}
			if got := patch(c.body, c.want == http.StatusGatewayTimeout); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
