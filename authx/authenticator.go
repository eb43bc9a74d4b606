package authx

import (
	"context"
	"net/http"
	"time"
)

// Authenticated is a successful answer.
type Authenticated struct {
	Identity  *Identity
	Audiences []string // audiences the credential is valid for, where it names any
	// StillValid reports whether the credential has not been revoked since, for requests that last; its expiry does not count. It
	// is true as long as that cannot be found out. nil: the credential cannot be revoked.
	StillValid func(ctx context.Context) bool
	// CertificateEnds is the expiry of the client certificate that authenticated the user; zero for other credentials.
	CertificateEnds time.Time
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
