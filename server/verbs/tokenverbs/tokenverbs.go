// Package tokenverbs serves requests about tokens: serviceaccounts/token, which
// issues them, and tokenreviews, which judges them.
//
// It promises: a token is issued for what exists, and is never stored or logged.
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

// Config says how tokens are issued and judged.
type Config struct {
	// Issue signs a token; id is its number. Nil: no tokens are issued.
	Issue func(ctx context.Context, g *authx.Grant) (token, id string, err error)
	// Review judges a token for these audiences. ok is false for one that is no
	// good; err says why.
	Review func(ctx context.Context, token string, audiences []string) (who *authx.Authenticated, ok bool, err error)

	Audiences []string      // of the API
	MaxAge    time.Duration // longer tokens are cut to this; 0: none are
	// Extend lets tokens of pods that ask for the usual hour live on for a year, with
	// a note of when they should have been renewed.
	Extend bool
	// MaxExtended is what becomes of that year where who signs takes on no longer lives.
	MaxExtended time.Duration
	Clock       func() time.Time // nil: time.Now
}

// Handlers are the specials for verbs.Handler.Special.
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

// requests is the resource that the body of serviceaccounts/token would be of.
var requests = &kinds.Resource{
	Group: "authentication.k8s.io", Version: "v1", Plural: "tokenrequests", Kind: "TokenRequest", Namespaced: true,
	New: func() kinds.Object { return &authenticationv1.TokenRequest{} },
}

func gvk(kind string) schema.GroupVersionKind {
	return authenticationv1.SchemeGroupVersion.WithKind(kind)
}
