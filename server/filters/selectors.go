package filters

import (
	"context"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/request"
)

// Selectors bounds the cost of long selectors and of other long parts of lists, watches and connections. Every client may send
// a megabyte of selectors, which takes half a second to parse and dozens of megabytes as long as the request lasts. So long ones
// are parsed one at a time, with users in turn, and the memory of all selectors, and of the URLs and headers of requests that
// last, is bounded, for each user and for all together. More is refused with 429.
type Selectors struct {
	fail Fail
	// Refused is called for each refusal. May be nil.
	Refused func(mutating bool)

	mu    sync.Mutex
	held  int            // bytes of all users but administrators
	users map[string]int // the same, of each user
	parse *fair.Gate     // parses one long selector at a time
}

const (
	countedQuery = 512      // a query counts from this many bytes on
	longSelector = 16 << 10 // a request is parsed in turn from this many bytes on
	termWeight   = 96       // bytes of a term of a selector, or of a value in one, besides its text
	maxOfUser    = 64 << 20
	maxOfAll     = 256 << 20
)

// NewSelectors makes Selectors.
func NewSelectors(fail Fail) *Selectors {
	return &Selectors{fail: fail, users: make(map[string]int), parse: fair.NewGate(fair.Limits{Places: 1})}
}

// Filter returns the filter. It must run after authentication.
func (l *Selectors) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if held, long := weigh(r); held > 0 {
			l.bounded(next, held, long, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// weigh returns about how many bytes the selectors and the header of a request take until it ends, 0 if they do not count, and
// whether parsing them takes long.
func weigh(r *http.Request) (held int, long bool) {
	query := r.URL.RawQuery
	if long = lengthOf(r) >= longSelector; long {
		held = lengthOf(r)
	} else if len(query) >= countedQuery && lengthOf(r) > 0 {
		held = len(query)
	}
	if held > 0 {
		held += termWeight * (strings.Count(query, ",") + strings.Count(query, "%2C") + strings.Count(query, "%2c"))
	}
	return held, long
}

// lengthOf returns how many bytes of a request with selectors, or of one that lasts, stay in memory until it ends.
func lengthOf(r *http.Request) int {
	i := request.From(r.Context()).Info
	size := len(r.URL.Path) + len(r.URL.RawPath) + len(r.URL.RawQuery)
	switch {
	case LongRunning(i):
		for name, values := range r.Header {
			for _, v := range values {
				size += len(name) + len(v)
			}
		}
		return size
	case i.Verb == "list" || i.Verb == "deletecollection":
		return size
	}
	return 0
}

func (l *Selectors) bounded(next http.Handler, size int, long bool, w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	name, master := "", false
	if s.User != nil {
		name, master = s.User.Name, s.User.InGroup(authx.GroupMasters)
	}
	if !l.take(name, master, size) {
		s.Terminated = http.StatusTooManyRequests
		if l.Refused != nil {
			l.Refused(s.Info.Verb == "deletecollection")
		}
		l.fail(w, r, apierrors.NewTooManyRequests("too many lists, watches and connections with long selectors, paths or headers at once", 1))
		return
	}
	defer s.OnEnd(func() { l.give(name, master, size) }) // a request keeps its selectors
	if long {
		if err := l.read(r.Context(), name, s.Info); err != nil {
			l.fail(w, r, err)
			return
		}
	}
	next.ServeHTTP(w, r)
}

// take counts n bytes for a user until give, if the user may have them.
func (l *Selectors) take(name string, master bool, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[name]+size > maxOfUser || !master && l.held+size > maxOfAll {
		return false
	}
	l.users[name] += size
	if !master {
		l.held += size
	}
	return true
}

func (l *Selectors) give(name string, master bool, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[name] -= size; l.users[name] == 0 {
		delete(l.users, name)
	}
	if !master {
		l.held -= size
	}
}

// read parses selectors in turn. Errors: that of ctx.
func (l *Selectors) read(ctx context.Context, user string, i *request.Info) error {
	place, err := l.parse.Enter(ctx, user, 0)
	if err != nil {
		return err
	}
	defer place.Leave()
	_, _ = i.Fields() // the verb reports errors
	_, _ = i.Labels()
	return nil
}
