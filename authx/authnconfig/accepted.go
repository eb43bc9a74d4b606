package authnconfig

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/oidc"
)

// acceptedToken is the token of a long-running request, which a provider has accepted.
type acceptedToken struct {
	providers    *Providers
	text, issuer string
	audiences    []string
	id           *authx.Identity
	by           atomic.Pointer[generation] // whose configuration accepted the token last
}

// stillValid reports whether the provider is still configured and publishes the key of the token, and whether a configuration that
// has changed accepts the token for the same user in the same groups.
func (t *acceptedToken) stillValid(ctx context.Context) bool {
	g := t.providers.current.Load()
	provider := g.byIssuer[t.issuer]
	if provider == nil {
		return false
	}
	signed, err := provider.Signed(ctx, t.text)
	if err != nil || !signed || g == t.by.Load() {
		return err != nil || signed
	}
	who, _, err := provider.AuthenticateToken(ctx, t.text, t.audiences)
	switch {
	case oidc.IsExpired(err), errors.Is(err, authx.ErrBusy), ctx.Err() != nil:
		return true
	case who == nil || !who.Identity.Covers(t.id):
		return false
	}
	t.by.Store(g)
	return true
}
