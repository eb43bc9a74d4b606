package authx

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Keys of an identity's extra that credentials fill.
const (
	CredentialID = "authentication.kubernetes.io/credential-id"
	PodName      = "authentication.kubernetes.io/pod-name"
	PodUID       = "authentication.kubernetes.io/pod-uid"
	NodeName     = "authentication.kubernetes.io/node-name"
	NodeUID      = "authentication.kubernetes.io/node-uid"
)

// Ref names an object that a token is bound to, or issued for.
type Ref struct{ Name, UID string }

// Grant is the content of a service account token.
type Grant struct {
	Namespace         string
	Account           Ref
	Pod, Node, Secret *Ref // nil where the token is not bound to one
	Audiences         []string
	Issued, Expires   time.Time
	WarnAfter         time.Time // zero: never
}

// AudienceAgnostic treats tokens that name no audiences as tokens for the API: they are
// taken where one of API is wanted.
type AudienceAgnostic struct {
	Tokens TokenAuthenticator
	API    []string
}

// AuthenticateToken implements TokenAuthenticator.
func (a AudienceAgnostic) AuthenticateToken(ctx context.Context, token string, audiences []string) (*Authenticated, bool, error) {
	if len(audiences) == 0 {
		audiences = a.API
	}
	shared := Intersect(a.API, audiences)
	if len(shared) == 0 && len(audiences) > 0 {
		return nil, false, nil
	}
	who, mine, err := a.Tokens.AuthenticateToken(ctx, token, a.API)
	if !mine || err != nil {
		return nil, mine, err
	}
	return &Authenticated{Identity: who.Identity, Audiences: shared, StillValid: who.StillValid}, true, nil
}

// Intersect returns the items of requested that good also has, in the order of requested and with its
// duplicates. The result may be requested itself.
func Intersect(good, requested []string) []string {
	if slices.Equal(good, requested) {
		return requested
	}
	known := sets.New(good...)
	var both []string
	for _, s := range requested {
		if known.Has(s) {
			both = append(both, s)
		}
	}
	return both
}

// Review verifies a token apart from any request, as TokenReview does: for these audiences, or those of the
// API if there are none. ok is false for an invalid token, with the reason as err. Text that is not a token
// is anonymous, for all requested audiences.
func Review(ctx context.Context, tokens TokenAuthenticator, anonymousToo bool, token string, audiences []string) (who *Authenticated, ok bool, err error) {
	r := (&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}).WithContext(ctx)
	var a Authenticator = Chain{Bearer{Tokens: tokens, Audiences: audiences}}
	if anonymousToo {
		a = AllowAnonymous{Next: a}
	}
	who, mine, err := a.Authenticate(r)
	if who == anonymous {
		who = &Authenticated{Identity: who.Identity, Audiences: audiences}
	}
	return who, mine && err == nil, err
}

// join lists errors as clients know it: one by itself, several in brackets.
func join(errs ...error) error {
	var aggregate utilerrors.Aggregate
	if len(errs) == 1 && errors.As(errs[0], &aggregate) {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}
