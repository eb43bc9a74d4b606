package authx

import (
	"net/http"
	"strings"
)

// Bearer hands the token of an Authorization header to Tokens. A header of
// another scheme, or without a token, is no credential. Once the token has been
// accepted the header is removed, so that nothing behind it can pass it on.
type Bearer struct {
	Tokens    TokenAuthenticator
	Audiences []string // a token must be valid for one of them; none: those of the API
}

// Authenticate implements Authenticator.
func (b Bearer) Authenticate(r *http.Request) (*Authenticated, bool, error) {
	token, ok := TokenOf(r.Header.Get("Authorization"))
	if !ok {
		return nil, false, nil
	}
	who, mine, err := b.Tokens.AuthenticateToken(r.Context(), token, b.Audiences)
	if err != nil {
		return nil, true, join(ErrBadToken, err)
	}
	if !mine {
		return nil, true, ErrBadToken
	}
	r.Header.Del("Authorization")
	return who, true, nil
}

// ErrBadToken: no authenticator accepts the token.
var ErrBadToken = badToken{}

type badToken struct{}

func (badToken) Error() string { return "invalid bearer token" }

// TokenOf takes the token out of an Authorization header: the second of its
// blank-separated parts, behind "Bearer" in any case.
func TokenOf(header string) (string, bool) {
	parts := strings.SplitN(strings.TrimSpace(header), " ", 3)
	if len(parts) < 2 || !strings.EqualFold(parts[0], "bearer") || parts[1] == "" {
		return "", false
	}
	return parts[1], true
}
