package filters

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/request"
)

const (
	// A round through all long-running requests begins revokedEvery after the last one, or after revokedRest times
	// the time that its checks took, so that it takes a bounded share of a processor. A check that takes longer than
	// revokedBusy waits for another server, and counts as that; after revokedPatience it fails. The next one begins at
	// the end of a check, or after revokedTurn unless revokedWaiting last already.
	revokedEvery    = 20 * time.Second
	revokedRest     = 10
	revokedBusy     = 100 * time.Microsecond
	revokedPatience = 5 * time.Second
	revokedTurn     = time.Millisecond
	revokedWaiting  = 64
	// revokedStep is the number of requests after which a round yields to other goroutines.
	revokedStep = 64
)

// Revoked ends long-running requests whose user may no longer make them: because an authorizer no longer allows the request,
// the credential was revoked, or another user may no longer impersonate this one. It ends no request because an authorizer fails or cannot
// read an object.
type Revoked struct {
	// Further, if set, returns the verbs that a request needs in addition to its own, and that its handler has authorized. It is set
	// before the first request.
	Further func(*request.Info) []string

	authorizer authx.Authorizer
	log        *slog.Logger

	mu   sync.Mutex
	open map[*request.Scope]struct{}
}

// NewRevoked makes a Revoked without requests. Its Run must run.
func NewRevoked(z authx.Authorizer, log *slog.Logger) *Revoked {
	return &Revoked{authorizer: z, log: log, open: map[*request.Scope]struct{}{}}
}

// Filter is the filter after Authorize. The request needs the context of EndWith.
func (v *Revoked) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := request.From(r.Context()); s.End != nil {
			v.mu.Lock()
			v.open[s] = struct{}{}
			v.mu.Unlock()
			defer s.OnEnd(func() { v.forget(s) })
		}
		next.ServeHTTP(w, r)
	})
}

// forget forgets a request at its end.
func (v *Revoked) forget(s *request.Scope) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, s)
}

// Run checks the rights of all long-running requests repeatedly, until ctx ends.
func (v *Revoked) Run(ctx context.Context) error {
	for rest := revokedEvery; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
		rest = max(revokedEvery, revokedRest*v.round(ctx))
	}
}

// round checks all requests, and returns for how long it kept a processor busy, about.
func (v *Revoked) round(ctx context.Context) time.Duration {
	v.mu.Lock()
	list := slices.AppendSeq(make([]*request.Scope, 0, len(v.open)), maps.Keys(v.open))
	v.mu.Unlock()
	var took, ended atomic.Int64
	var unread atomic.Pointer[error]
	var checks errgroup.Group
	checks.SetLimit(revokedWaiting)
	turn := make(chan struct{}, 1) // full while a check has its turn
	for i, s := range list {
		if i%revokedStep == 0 {
			runtime.Gosched()
		}
		turn <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		checks.Go(func() error {
			pass := sync.OnceFunc(func() { <-turn })
			waits := time.AfterFunc(revokedTurn, pass)
			began, stands := time.Now(), true
			if err := cache.Try(func() { stands = v.stillAllowed(ctx, s) }); err != nil { // its panic would end the server
				unread.Store(&err)
			}
			took.Add(int64(min(time.Since(began), revokedBusy)))
			waits.Stop()
			pass()
			if !stands && ctx.Err() == nil && v.has(s) {
				ended.Add(1)
				s.End()
			}
			return nil
		})
	}
	_ = checks.Wait()
	if err := unread.Load(); err != nil {
		v.log.Error("the rights of some watches and connections cannot be checked", "error", *err)
	}
	if n := ended.Load(); n > 0 {
		v.log.Info("ended watches and connections whose users may no longer have them", "count", n)
	}
	return time.Duration(took.Load())
}

func (v *Revoked) has(s *request.Scope) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, open := v.open[s]
	return open
}

// stillAllowed reports whether the user of a request may still make it.
func (v *Revoked) stillAllowed(ctx context.Context, s *request.Scope) bool {
	ctx, cancel := context.WithTimeout(ctx, revokedPatience)
	defer cancel()
	for _, stands := range s.Stand {
		if !stands(ctx) {
			return false
		}
	}
	info := s.Info.Fresh() // the request's goroutine uses its own
	a := Attributes(&request.Scope{Info: info, User: s.User})
	verbs := []string{info.Verb}
	if getsFirst(info) {
		verbs = append(verbs, "get")
	}
	if v.Further != nil {
		verbs = append(verbs, v.Further(info)...)
	}
	for _, a.Verb = range verbs {
		if d, _, err := v.authorizer.Authorize(ctx, a); d != authx.Allow && err == nil {
			return false
		}
	}
	return true
}
