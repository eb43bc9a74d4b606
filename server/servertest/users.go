package servertest

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/server"
)

// Admin is the user of Token.
var Admin = &authx.Identity{Name: "admin", UID: "admin-uid", Groups: []string{authx.GroupMasters}}

// Tokens are bearer tokens, and whose they are.
type Tokens map[string]*authx.Identity

// AuthenticateToken implements authx.TokenAuthenticator.
func (t Tokens) AuthenticateToken(_ context.Context, token string, _ []string) (*authx.Authenticated, bool, error) {
	who := t[token]
	return &authx.Authenticated{Identity: who}, who != nil, nil
}

// Everybody authenticates each request as one user, whatever it shows.
type Everybody struct{ User *authx.Identity }

// Authenticate implements authx.Authenticator.
func (e Everybody) Authenticate(*http.Request) (*authx.Authenticated, bool, error) {
	return &authx.Authenticated{Identity: e.User}, true, nil
}

// accounts shows the judge of service accounts' tokens the objects that these name.
type accounts struct{ server atomic.Pointer[server.Server] }

// follow is a loop that only tells which server it is of, which is made after its
// authenticators.
func (a *accounts) follow(s *server.Server) server.Loop {
	a.server.Store(s)
	return func(ctx context.Context) error { <-ctx.Done(); return nil }
}

// Object implements serviceaccount.Lookup.
func (a *accounts) Object(_ context.Context, plural, namespace, name string) (serviceaccount.Object, bool, error) {
	if s := a.server.Load(); s != nil {
		if item := s.Cache.Get(plural, namespace, name); item != nil {
			return serviceaccount.Object{UID: item.Meta().UID}, true, nil
		}
	}
	return serviceaccount.Object{}, false, nil
}

// Secret implements serviceaccount.Lookup: tokens that are kept in Secrets are not
// known here.
func (a *accounts) Secret(context.Context, string, string) (serviceaccount.Secret, bool, error) {
	return serviceaccount.Secret{}, false, nil
}
