package verbs

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestAdmissionWeight: writes of large definitions take turns, however short their bodies are; those of small
// definitions and of other kinds do not.
func TestAdmissionWeight(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	definitions := catalogue.Lookup("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	pods := catalogue.Lookup("", "v1", "pods")
	stored := cache.New(catalogue)
	for i, size := range []int{1 << 10, 20 << 10} {
		name := []string{"small", "large"}[i]
		stored.Apply([]sqlstore.Change{{Row: sqlstore.Row{
			Key: sqlstore.Key{Resource: definitions.Storage.Key, Name: name}, Revision: int64(i + 1), Created: int64(i + 1),
			Value: []byte(fmt.Sprintf(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":%q,"annotations":{"a":%q}}}`, name, strings.Repeat("x", size))),
		}}})
	}
	h := &Handler{Catalogue: catalogue, Objects: objects.New(catalogue, nil, stored), Answers: &answers.Answers{}, Gate: NewGate(budget.Sizes{})}
	for _, c := range []struct {
		name   string
		r      *kinds.Resource
		at     string // verb, name and subresource of the request
		bytes  int
		weight int64
		want   int64
	}{
		{"a small definition", definitions, "create", 16<<10 - 1, 5, 5},
		{"a large definition", definitions, "create", 16 << 10, 5, budget.Small},
		{"one that weighs more", definitions, "create", 1 << 20, 2 * budget.Small, 2 * budget.Small},
		{"a large Pod", pods, "create", 1 << 20, 5, 5},
		{"what is never stored", &kinds.Resource{}, "create", 1 << 20, 5, 5},
		{"no resource", nil, "create", 1 << 20, 5, 5},
		{"a patch of a small definition", definitions, "patch small", 10, 5, 5},
		{"a patch of a large definition", definitions, "patch large", 10, 5, budget.Small},
		{"a patch of its status", definitions, "patch large status", 10, 5, budget.Small},
		{"its status", definitions, "update large status", 10, 5, budget.Small},
		{"a patch of none", definitions, "patch none", 10, 5, 5},
		{"what nobody may", definitions, "nothing large", 10, 5, 5},
	} {
		verb, rest, _ := strings.Cut(c.at, " ")
		name, sub, _ := strings.Cut(rest, " ")
		call := &Call{Request: answers.Request{Resource: c.r, Scope: &request.Scope{}}, Info: &request.Info{Verb: verb, Name: name}}
		if c.r != nil {
			call.Sub = c.r.Sub(sub)
			call.Scope.Permit, _, _ = permits.Authorize(t.Context(), authx.AlwaysAllow{}, &authx.Attributes{
				Verb: verb, APIGroup: c.r.Group, APIVersion: c.r.Version, Resource: c.r.Plural, Subresource: sub, Name: name, ResourceRequest: true,
			})
		}
		if got := h.admissionWeight(call, make([]byte, c.bytes), c.weight); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// freeSeat is the seat of a call, which others may use at times.
type freeSeat struct{ free atomic.Bool }

func (s *freeSeat) Sending()    { s.free.Store(true) }
func (s *freeSeat) Sent() error { s.free.Store(false); return nil }
func (s *freeSeat) Leave()      {}

// TestSeatOfHeavyBody: others may use the seat of a call whose body waits at the gate.
func TestSeatOfHeavyBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seat := &Handler{Gate: fair.NewGate(fair.Limits{Places: 1})}, &freeSeat{}
		place, err := h.Gate.Enter(t.Context(), "other", 1)
		if err != nil {
			t.Fatal(err)
		}
		call := &Call{Request: answers.Request{R: httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), Scope: &request.Scope{Seat: seat}}}
		done := make(chan error, 1)
		go func() { done <- h.hold(call, 1) }()
		synctest.Wait()
		if !seat.free.Load() {
			t.Error("the call keeps its seat while it waits")
		}
		place.Leave()
		if err := <-done; err != nil || seat.free.Load() || call.Release == nil {
			t.Errorf("%v; the seat is free: %t", err, seat.free.Load())
		}
		call.Done()
	})
}
