package aggregator

import (
	"net/http"
	"sync"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

// slots counts requests under way to aggregated servers, except those that last. A server that does
// not answer holds each of them until its deadline; without a bound it would take the places of
// requests that have nothing to do with it.
type slots struct {
	mu sync.Mutex
	by map[slot]int
}

// slot identifies a limit: for all requests, for a server, or for a user of it.
type slot struct {
	writes        bool
	service, user string
}

// enter counts a request until leave is called. A nil leave refuses it.
func (p *Proxy) enter(r *http.Request, scope *request.Scope, service string) (leave func()) {
	writes, most := true, p.Write
	switch scope.Info.Verb {
	case "get", "list", "head":
		writes, most = false, p.Read
	}
	user := scope.User.Name
	if scope.User.InGroup(authx.GroupUnauthenticated) {
		user = "\x00" + r.RemoteAddr // each stranger for itself
	}
	counted := [...]slot{{writes: writes}, {writes: writes, service: service}, {writes, service, user}}
	s := &p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range counted {
		if most > 0 && s.by[c] >= max(most>>i, 1) && !scope.User.InGroup(authx.GroupMasters) {
			return nil
		}
	}
	if s.by == nil {
		s.by = map[slot]int{}
	}
	for _, c := range counted {
		s.by[c]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range counted {
			if s.by[c]--; s.by[c] == 0 {
				delete(s.by, c)
			}
		}
	}
}
