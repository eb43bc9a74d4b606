package rowlocktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/webhook"
)

// Fault is a rule that makes requests of clients fail. Empty fields match everything; Effect is required. It
// never applies to requests of the server's own controllers, nor to discovery and other non-resource paths.
type Fault struct {
	Verb        string // get, list, watch, create, update, patch, delete or deletecollection
	Group       string // "apps", "shop.example"; with a Resource, none means the core group
	Resource    string // "pods", or "pods/status" for a subresource; "pods" is not of its subresources
	Namespace   string
	Name        string // of a create too, but for bodies in YAML and CBOR
	User, Agent string // the agent is matched by its beginning

	// Webhook means calls of a webhook in place of requests: those whose URL, or whose Service
	// as namespace/name/path, has this in it. Effects of them are Delay, Hold, and Refuse.
	Webhook string

	Skip   int     // how many that match are left alone first
	Times  int     // how many go wrong then; 0: all
	Chance float64 // of each to go wrong; 0: each does
	Seed   uint64  // of chance: with the same seed and order the same requests go wrong

	Effect Effect
}

// Injected is a Fault of a server.
type Injected struct {
	Fault
	all *faults

	mu      sync.Mutex
	seen    int
	hits    int
	rand    *rand.Rand
	removed chan struct{}
	gone    bool
}

// faults are the faults of a server.
type faults struct {
	mu   sync.Mutex
	list []*Injected
}

// Inject adds a rule, behind those that there are: the first that applies has its effect.
func (s *Server) Inject(f Fault) *Injected {
	s.t.Helper()
	if f.Effect.serve == nil {
		s.t.Fatalf("rowlocktest: a fault without an Effect: %+v", f)
	}
	if f.Webhook != "" && f.Effect.call == nil {
		s.t.Fatalf("rowlocktest: calls of webhooks have no effect %s", f.Effect)
	}
	if group := s.forgotten(f); group != "" {
		s.t.Fatalf("rowlocktest: %s are of the group %s: a fault without Group is of the core group", f.Resource, group)
	}
	i := &Injected{Fault: f, all: s.faults, rand: rand.New(rand.NewPCG(f.Seed, f.Seed)), removed: make(chan struct{})}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append(s.faults.list, i)
	return i
}

// forgotten returns the group of a resource if a fault names none and the core group has no such resource: it
// would have no effect. "" for unknown resources, which may be added later.
func (s *Server) forgotten(f Fault) (group string) {
	plural, _, _ := strings.Cut(f.Resource, "/")
	for _, res := range s.plane.Server.Config().Catalogue.Known() {
		switch {
		case f.Group != "" || res.Plural != plural:
		case res.Group == "":
			return ""
		default:
			group = res.Group
		}
	}
	return group
}

// Hits returns how often the rule had its effect.
func (i *Injected) Hits() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hits
}

// Remove removes the rule. Requests that it holds up continue.
func (i *Injected) Remove() {
	i.all.mu.Lock()
	for at, other := range i.all.list {
		if other == i {
			i.all.list = append(i.all.list[:at:at], i.all.list[at+1:]...)
			break
		}
	}
	i.all.mu.Unlock()
	i.end()
}

func (i *Injected) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.gone {
		i.gone = true
		close(i.removed)
	}
}

// clear removes all rules.
func (f *faults) clear() {
	f.mu.Lock()
	list := f.list
	f.list = nil
	f.mu.Unlock()
	for _, i := range list {
		i.end()
	}
}

// strikes counts a match, and reports whether the fault applies to it.
func (i *Injected) strikes() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.gone || i.Times > 0 && i.hits >= i.Times {
		return false
	}
	if i.seen++; i.seen <= i.Skip {
		return false
	}
	if i.Chance > 0 && i.rand.Float64() >= i.Chance {
		return false
	}
	i.hits++
	return true
}

// find returns the first rule that matches and applies.
func (f *faults) find(matches func(*Injected) bool) *Injected {
	f.mu.Lock()
	list := f.list
	f.mu.Unlock()
	for _, i := range list {
		if matches(i) && i.strikes() {
			return i
		}
	}
	return nil
}

// filter applies faults to the requests of clients.
func (f *faults) filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope := request.From(r.Context())
		if !scope.Info.IsResource {
			next.ServeHTTP(w, r)
			return
		}
		hit := f.find(func(i *Injected) bool { return i.Webhook == "" && i.means(scope, r) })
		if hit == nil {
			next.ServeHTTP(w, r)
			return
		}
		hit.Effect.serve(w, r, next, hit.removed)
	})
}

func (i *Injected) means(scope *request.Scope, r *http.Request) bool {
	info := scope.Info
	resource, sub, _ := strings.Cut(i.Resource, "/")
	is := func(want, have string) bool { return want == "" || want == have }
	return is(i.Verb, info.Verb) && is(i.Namespace, info.Namespace) &&
		(i.Resource == "" && is(i.Group, info.Group) || i.Resource != "" && resource == info.Resource && i.Group == info.Group && sub == info.Subresource) &&
		(scope.User == nil && i.User == "" || scope.User != nil && is(i.User, scope.User.Name)) &&
		strings.HasPrefix(r.UserAgent(), i.Agent) && (i.Name == "" || i.Name == nameOf(info, r))
}

// maxBody limits the part of a body that is searched for the name of an object: as much as a server accepts.
const maxBody = 2 * budget.MostObject

// nameOf returns the name in a request.
func nameOf(info *request.Info, r *http.Request) string {
	if info.Name != "" || info.Verb != "create" || r.Body == nil {
		return info.Name
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), failing{rest, err}), rest}
	meta, _ := metaOf(body)
	return meta.Name
}

// failing reads on, unless that has failed already.
type failing struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (f failing) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Reader.Read(p)
}

// webhook applies faults to calls of webhooks.
func (f *faults) webhook(ctx context.Context, t webhook.Target) error {
	called := t.URL
	if called == "" {
		called = fmt.Sprintf("%s/%s/%s", t.Service.Namespace, t.Service.Name, strings.TrimPrefix(t.Service.Path, "/"))
	}
	hit := f.find(func(i *Injected) bool { return i.Webhook != "" && strings.Contains(called, i.Webhook) })
	if hit == nil {
		return nil
	}
	return hit.Effect.call(ctx, hit.removed)
}
