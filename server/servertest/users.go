package servertest

import (
	"context"
	"net/http"

	"github.com/rowlock/rowlock/authx"
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

// Everybody authenticates each request as one user, whatever its credentials.
type Everybody struct{ User *authx.Identity }

// Authenticate implements authx.Authenticator.
func (e Everybody) Authenticate(*http.Request) (*authx.Authenticated, bool, error) {
	return &authx.Authenticated{Identity: e.User}, true, nil
}
