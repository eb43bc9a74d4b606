package authx

import (
	"context"
	"net/http"
)

// Authenticated is a successful answer.
type Authenticated struct {
	Identity  *Identity
	Audiences []string // audiences the credential is valid for, where it names any
}

// Authenticator examines a request. mine is false if the request has no credential of this mechanism; an
// error means an invalid credential of this mechanism. The identity has a name; the chains refuse one
// without.
type Authenticator interface {
	Authenticate(r *http.Request) (who *Authenticated, mine bool, err error)
}

// TokenAuthenticator judges a bearer token, with the same meaning of mine and err.
type TokenAuthenticator interface {
	AuthenticateToken(ctx context.Context, token string, audiences []string) (who *Authenticated, mine bool, err error)
}
