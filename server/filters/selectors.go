package filters

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

// Selectors bounds what long selectors cost, and what else makes a list or watch
// long. A megabyte of selectors takes half a second to read and dozens of megabytes
// for as long as the request lasts, and every client may send it: one at a time is read,
// in turn among users, so that processors are left to others. Each user may keep
// only so much of the memory that selectors take, however short each is, as may all
// users together. More is refused with 429.
type Selectors struct {
	fail Fail
	// Refused is called for each refusal. May be nil.
	Refused func(mutating bool)

	mu      sync.Mutex
	held    int              // bytes of all users but administrators
	users   map[string]*user // that hold any
	reading bool             // selectors are being parsed
	waiting []*reader        // in the order of their arrival
	turns   int64            // how many were let in
}

// user is somebody with long requests.
type user struct {
	held int
	turn int64 // value of turns when the user was last let in, or began
}

// reader waits to be let in.
type reader struct {
	user *user
	in   chan struct{}
}

const (
	countedQuery = 512      // bytes of a query from which on it counts
	longSelector = 16 << 10 // bytes of a request from which on it is read in turn
	termWeight   = 96       // bytes that a term of a selector, or a value in one, takes besides its text
	maxOfUser    = 64 << 20
	maxOfAll     = 256 << 20
)

// NewSelectors makes the bound.
func NewSelectors(fail Fail) *Selectors {
	return &Selectors{fail: fail, users: make(map[string]*user)}
}

// Filter is the filter. It needs to know the user.
func (l *Selectors) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if held, long := weigh(r); held > 0 {
			l.bounded(next, held, long, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// weigh is about how many bytes of memory the selectors and the header of a request take until it ends, 0 where
// that is not worth counting, and whether reading them is long.
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

// lengthOf is how many bytes of a request with selectors stay until it ends.
func lengthOf(r *http.Request) int {
	switch request.From(r.Context()).Info.Verb {
	case "list", "deletecollection":
		return len(r.URL.RawQuery)
	case "watch":
		size := len(r.URL.RawQuery)
		for name, values := range r.Header {
			for _, v := range values {
				size += len(name) + len(v)
			}
		}
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
	u := l.take(name, master, size)
	if u == nil {
		s.Terminated = http.StatusTooManyRequests
		if l.Refused != nil {
			l.Refused(s.Info.Verb == "deletecollection")
		}
		l.fail(w, r, apierrors.NewTooManyRequests("too many lists and watches with long selectors at once", 1))
		return
	}
	defer l.returned(s, name, master, size)
	if long {
		if err := l.read(r.Context(), u, s.Info); err != nil {
			l.fail(w, r, err)
			return
		}
	}
	next.ServeHTTP(w, r)
}

// take lets a user keep so many bytes more, which give returns, or gives nil.
func (l *Selectors) take(name string, master bool, size int) *user {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[name]
	if u == nil {
		// A new user goes behind all who wait since before the last turn. Otherwise users
		// who return again and again could overtake the others for ever.
		u = &user{turn: l.turns - 1}
	}
	if u.held+size > maxOfUser || !master && l.held+size > maxOfAll {
		return nil
	}
	l.users[name] = u
	u.held += size
	if !master {
		l.held += size
	}
	return u
}

// returned gives back what a request took whose handler has returned, or has that done at
// its end: the selectors are kept until then.
func (l *Selectors) returned(s *request.Scope, name string, master bool, size int) {
	if s.Outlives() {
		s.AtEnd(func() { l.give(name, master, size) })
		return
	}
	l.give(name, master, size)
}

func (l *Selectors) give(name string, master bool, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[name]
	if u.held -= size; u.held == 0 {
		delete(l.users, name)
	}
	if !master {
		l.held -= size
	}
}

// read parses selectors in turn. Errors: that of ctx.
func (l *Selectors) read(ctx context.Context, u *user, i *request.Info) error {
	if err := l.enter(ctx, u); err != nil {
		return err
	}
	defer l.next()
	_, _ = i.Fields() // what is wrong with one is said where it is used
	_, _ = i.Labels()
	return nil
}

func (l *Selectors) enter(ctx context.Context, u *user) error {
	l.mu.Lock()
	if !l.reading {
		l.let(u)
		l.mu.Unlock()
		return nil
	}
	me := &reader{user: u, in: make(chan struct{})}
	l.waiting = append(l.waiting, me)
	l.mu.Unlock()
	select {
	case <-me.in:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	at := slices.Index(l.waiting, me)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	l.mu.Unlock()
	if at < 0 { // let in at the same moment
		l.next()
	}
	return ctx.Err()
}

// let notes that a user is let in. l.mu is held.
func (l *Selectors) let(u *user) {
	l.turns++
	l.reading, u.turn = true, l.turns
}

// next lets in the waiting request whose user was let in longest ago.
func (l *Selectors) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.reading = false
		return
	}
	at := 0
	for i, r := range l.waiting {
		if r.user.turn < l.waiting[at].user.turn {
			at = i
		}
	}
	next := l.waiting[at]
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.let(next.user)
	close(next.in)
}
