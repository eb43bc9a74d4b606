// Package tokenverbs serves serviceaccounts/token, which issues tokens, and tokenreviews, which verifies
// them.
//
// A token is issued only for existing objects, and is never stored or logged.
package tokenverbs

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/verbs"
)

// Config configures the issuing and verification of tokens.
type Config struct {
	// Issue signs a token with the ID id. Nil: no tokens are issued.
	Issue func(ctx context.Context, g *authx.Grant) (token, id string, err error)
	// Review verifies a token for these audiences. ok is false for an invalid one, for the reason err.
	Review func(ctx context.Context, token string, audiences []string) (who *authx.Authenticated, ok bool, err error)

	Audiences []string      // of the API
	MaxAge    time.Duration // the longest lifetime; 0: no limit
	// Extend lets tokens of pods that request the usual hour live for a year, with a note when they should be
	// renewed.
	Extend bool
	// MaxExtended takes the place of that year if the signer allows no longer lifetimes.
	MaxExtended time.Duration
	Clock       func() time.Time // nil: time.Now
}

// Handlers returns the specials for verbs.Handler.Special.
func Handlers(cfg Config) map[string]verbs.Special {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	all := map[string]verbs.Special{"tokenreviews.authentication.k8s.io": cfg.review}
	if cfg.Issue != nil {
		all["serviceaccounts/token"] = cfg.request
	}
	return all
}

// requests is the resource of the body of serviceaccounts/token.
var requests = &kinds.Resource{
	Group: "authentication.k8s.io", Version: "v1", Plural: "tokenrequests", Kind: "TokenRequest", Namespaced: true,
	New: func() kinds.Object { return &authenticationv1.TokenRequest{} },
}

func gvk(kind string) schema.GroupVersionKind {
	return authenticationv1.SchemeGroupVersion.WithKind(kind)
}
