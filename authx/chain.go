package authx

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// Chain tries authenticators in order: the first that succeeds decides, whatever the result of earlier ones.
// If none does, the errors for invalid credentials are joined; if there are none the request has no
// credential. Every identity from a chain has a name.
type Chain []Authenticator

// Authenticate implements Authenticator.
func (c Chain) Authenticate(r *http.Request) (*Authenticated, bool, error) {
	who, mine, err := first(c, func(a Authenticator) (*Authenticated, bool, error) { return a.Authenticate(r) })
	if who != nil {
		who = withGroup(who)
	}
	return who, mine, err
}

// first asks the authenticators of a chain in order.
func first[A any](chain []A, ask func(A) (*Authenticated, bool, error)) (*Authenticated, bool, error) {
	var errs []error
	for _, a := range chain {
		who, mine, err := named(ask(a))
		if mine && err == nil {
			return who, true, nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, true, join(errs...)
	}
	return nil, false, nil
}

// MaxToken is the maximum length of a token in bytes. A longer one is refused before it is decoded: the
// length bounds the cost of an unknown token.
const MaxToken = 64 << 10

// ErrLongToken: a token is longer than any that is good.
var ErrLongToken = fmt.Errorf("the token is longer than %d bytes", MaxToken)

// TokenChain tries token authenticators in order, like Chain. All tokens that reach a
// server go through one.
type TokenChain []TokenAuthenticator

// AuthenticateToken implements TokenAuthenticator.
func (c TokenChain) AuthenticateToken(ctx context.Context, token string, audiences []string) (*Authenticated, bool, error) {
	if len(token) > MaxToken {
		return nil, true, ErrLongToken
	}
	return first(c, func(a TokenAuthenticator) (*Authenticated, bool, error) {
		return a.AuthenticateToken(ctx, token, audiences)
	})
}

// withGroup adds system:authenticated, unless the identity is anonymous or has it.
func withGroup(who *Authenticated) *Authenticated {
	id := who.Identity
	if id.Name == Anonymous || id.InGroup(GroupAuthenticated) || id.InGroup(GroupUnauthenticated) {
		return who
	}
	with := *id
	with.Groups = append(append(make([]string, 0, len(id.Groups)+1), id.Groups...), GroupAuthenticated)
	member := *who
	member.Identity = &with
	return &member
}

// anonymous is the user of a request without credentials.
var anonymous = &Authenticated{Identity: &Identity{Name: Anonymous, Groups: []string{GroupUnauthenticated}}}

// AllowAnonymous takes requests without credentials as anonymous.
type AllowAnonymous struct {
	Next  Authenticator
	Paths []string // where they are welcome, exactly; nil: everywhere
	// Closed, if set, reports whether anonymous requests are refused at present.
	Closed func() bool
}

// Authenticate calls Next; a request without credentials is anonymous, one with
// bad credentials stays refused.
func (a AllowAnonymous) Authenticate(r *http.Request) (*Authenticated, bool, error) {
	who, mine, err := a.Next.Authenticate(r)
	if mine || err != nil {
		return who, mine, err
	}
	if a.Closed != nil && a.Closed() || a.Paths != nil && (r.URL == nil || !slices.Contains(a.Paths, r.URL.Path)) {
		return nil, false, nil
	}
	return anonymous, true, nil
}

// SystemMasters allows the group system:masters everything and has no opinion on others.
type SystemMasters struct{}

// Authorize implements Authorizer.
func (SystemMasters) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.User != nil && a.User.InGroup(GroupMasters) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

// AuthorizerChain calls authorizers in order; the first that allows or denies decides.
type AuthorizerChain []Authorizer

// Authorize implements Authorizer. Errors of authorizers without an opinion are
// joined and returned if none decides.
func (c AuthorizerChain) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	var errs []error
	var reasons []byte
	for _, next := range c {
		d, reason, err := next.Authorize(ctx, a)
		if err != nil {
			errs = append(errs, err)
		}
		if reason != "" {
			if len(reasons) > 0 {
				reasons = append(reasons, '\n')
			}
			reasons = append(reasons, reason...)
		}
		if d != NoOpinion {
			return d, reason, err
		}
	}
	if len(errs) > 0 {
		return NoOpinion, string(reasons), join(errs...)
	}
	return NoOpinion, string(reasons), nil
}
