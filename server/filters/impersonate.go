package filters

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// The headers of impersonation.
const (
	impersonateUser  = "Impersonate-User"
	impersonateGroup = "Impersonate-Group"
	impersonateUID   = "Impersonate-Uid"
	impersonateExtra = "Impersonate-Extra-"
)

const authenticationGroup = "authentication.k8s.io"

// Bounds for impersonation: the authorizer decides on each part of the identity, for any user that sends the headers, and before
// the request has a seat.
const (
	maxParts         = 512 // users, groups, uids and values of extra of one request
	maxImpersonating = 256 // requests whose headers are authorized at once
	eachImpersonates = 32  // of these, on one connection
)

// claim is a part of the identity. Claims of the core group have no version, as on a stock server: webhooks and conditions of
// authorizers expect that.
type claim struct {
	attributes authx.Attributes
	text       string // as a stock server prints it in an error
}

// Impersonation defines how the headers are answered.
type Impersonation struct {
	// Constrained allows it in the modes of constrained impersonation too.
	Constrained bool
	// Unnamed answers groups, extra and a UID without a user's name with 400, else with 500.
	Unnamed bool
}

// Impersonate lets a user act as another, if it may impersonate each part of that identity. It removes the headers.
func Impersonate(z authx.Authorizer, how Impersonation, log *slog.Logger, fail Fail) Filter {
	i := &impersonation{
		Impersonation: how, authorizer: z, log: log, fail: fail,
		gate: authx.NewGate(authx.GateConfig{What: "impersonation", All: maxImpersonating, Each: eachImpersonates, Source: connection}),
	}
	if how.Constrained {
		i.modes = newConstrained(z)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !impersonates(r.Header) || i.done(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

type impersonation struct {
	Impersonation
	authorizer authx.Authorizer
	modes      *constrained // nil: it is not constrained
	gate       *authx.Gate
	log        *slog.Logger
	fail       Fail
}

// done replaces the user, or answers the request if the user may not impersonate.
func (i *impersonation) done(w http.ResponseWriter, r *http.Request) bool {
	s := request.From(r.Context())
	if n := parts(r.Header); n > maxParts {
		i.fail(w, r, apierrors.NewBadRequest(fmt.Sprintf("an identity of %d parts cannot be impersonated: it may have %d", n, maxParts)))
		return false
	}
	who, claims, err := wanted(r.Header)
	if err != nil {
		i.log.Debug("impersonation refused", "error", err)
		i.unnamed(w, r, err)
		return false
	}
	if who == nil {
		strip(r.Header) // the headers name no user; later handlers must not see them
		return true
	}
	leave, err := i.gate.Enter(r.Context())
	if err != nil {
		s.Terminated = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "1")
		i.fail(w, r, apierrors.NewTooManyRequests("too many requests with impersonation at once, please try again later", 1))
		return false
	}
	defer leave()
	defer s.Took(request.Impersonation, time.Now())
	constraint, stand := "", i.stand(claims)
	if i.modes != nil {
		who, constraint, err = i.modes.become(r.Context(), s, requested(r.Header))
		stand = stillMayImpersonate(i.authorizer, s, requested(r.Header), constraint)
	} else {
		err = i.allowed(r.Context(), s.User, claims)
	}
	if err != nil {
		i.log.Debug("impersonation refused", "error", err)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		i.fail(w, r, err)
		return false
	}
	if LongRunning(s.Info) {
		s.Stand = append(s.Stand, stand)
	}
	s.Actor, s.User, s.Constraint = s.User, who, constraint
	strip(r.Header)
	return true
}

// allowed checks each claim of a caller. Errors: a refusal.
func (i *impersonation) allowed(ctx context.Context, caller *authx.Identity, claims []claim) error {
	for n := range claims {
		a := &claims[n].attributes
		a.User, a.Verb, a.ResourceRequest = caller, "impersonate", true
		d, reason, err := i.authorizer.Authorize(ctx, a)
		if d == authx.Allow {
			continue
		}
		if err != nil {
			i.log.Debug("impersonation refused", "error", err)
		}
		return permits.Forbidden(a, reason)
	}
	return nil
}

// stand returns a function that reports whether claims that were allowed still are. It does as long as the authorizer fails.
func (i *impersonation) stand(claims []claim) func(context.Context) bool {
	return func(ctx context.Context) bool {
		for n := range claims {
			a := claims[n].attributes
			if d, _, err := i.authorizer.Authorize(ctx, &a); d != authx.Allow && err == nil {
				return false
			}
		}
		return true
	}
}

// unnamed answers headers that do not name a user.
func (i *impersonation) unnamed(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case i.Constrained:
		who := requested(r.Header)
		i.fail(w, r, apierrors.NewBadRequest(fmt.Sprintf(
			"requested &user.DefaultInfo{Name:%#v, UID:%#v, Groups:%#v, Extra:%#v} without impersonating a user name", who.Name, who.UID, who.Groups, who.Extra)))
	case i.Unnamed:
		i.fail(w, r, apierrors.NewBadRequest(err.Error()))
	default:
		internal(w, r, err)
	}
}

// requested returns the identity as the headers have it.
func requested(h http.Header) *authx.Identity {
	who := &authx.Identity{Name: h.Get(impersonateUser), UID: h.Get(impersonateUID), Groups: h[impersonateGroup]}
	if extra := extras(h); len(extra) > 0 {
		who.Extra = extra
	}
	return who
}

// strip removes the headers.
func strip(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			h.Del(name)
		}
	}
}

// parts counts the values of the headers.
func parts(h http.Header) int {
	n := 0
	for name, values := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			n += len(values)
		}
	}
	return n
}

// connection returns the connection of a request, or nil.
func connection(ctx context.Context) any {
	if c := wire.From(ctx); c != nil {
		return c
	}
	return nil
}

// impersonates reports whether the request has a header of impersonation.
func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// wanted reads the identity in the headers, and the claims that it takes. It returns nil without headers.
func wanted(h http.Header) (*authx.Identity, []claim, error) {
	name := h.Get(impersonateUser)
	groups, uid := h[impersonateGroup], h.Get(impersonateUID)
	extra := extras(h)
	claims := userClaims(name)
	for _, g := range groups {
		claims = append(claims, claim{authx.Attributes{Resource: "groups", Name: g}, fmt.Sprintf("{Group  %s    }", g)})
	}
	for _, k := range slices.Sorted(maps.Keys(extra)) {
		for _, v := range extra[k] {
			claims = append(claims, claim{
				authx.Attributes{APIGroup: authenticationGroup, APIVersion: "v1", Resource: "userextras", Subresource: k, Name: v},
				fmt.Sprintf("{UserExtra  %s  %s/v1  %s}", v, authenticationGroup, k),
			})
		}
	}
	if uid != "" {
		claims = append(claims, claim{
			authx.Attributes{APIGroup: authenticationGroup, APIVersion: "v1", Resource: "uids", Name: uid},
			fmt.Sprintf("{UID  %s  %s/v1  }", uid, authenticationGroup),
		})
	}
	if len(claims) == 0 {
		return nil, nil, nil
	}
	if name == "" {
		texts := make([]string, len(claims))
		for i := range claims {
			texts[i] = claims[i].text
		}
		return nil, nil, fmt.Errorf("requested [%s] without impersonating a user", strings.Join(texts, " "))
	}
	who := &authx.Identity{Name: name, UID: uid, Groups: allGroups(name, groups)}
	if len(extra) > 0 {
		who.Extra = extra
	}
	return who, claims, nil
}

func userClaims(name string) []claim {
	if name == "" {
		return nil
	}
	if ns, sa, ok := authx.SplitServiceAccount(name); ok {
		return []claim{{authx.Attributes{Resource: "serviceaccounts", Namespace: ns, Name: sa}, ""}}
	}
	return []claim{{authx.Attributes{Resource: "users", Name: name}, ""}}
}

// allGroups adds the group of all authenticated users, or that of all unauthenticated ones.
func allGroups(name string, asked []string) []string {
	groups := append([]string{}, asked...)
	if ns, _, ok := authx.SplitServiceAccount(name); ok && len(asked) == 0 {
		groups = append(groups, authx.GroupServiceAccounts, authx.GroupServiceAccounts+":"+ns)
	}
	return withAuthenticated(name, groups)
}

// withAuthenticated adds the group of all that are authenticated, or of all that are not.
func withAuthenticated(name string, groups []string) []string {
	add := authx.GroupAuthenticated
	if name == authx.Anonymous {
		add = authx.GroupUnauthenticated
	}
	for _, g := range groups {
		// A user in the group of unauthenticated users is not authenticated; no group is added twice.
		if g == add || g == authx.GroupUnauthenticated {
			return groups
		}
	}
	return append(slices.Clip(groups), add)
}

func extras(h http.Header) map[string][]string {
	out := map[string][]string{}
	for name, values := range h {
		if !strings.HasPrefix(name, impersonateExtra) {
			continue
		}
		key := strings.ToLower(name[len(impersonateExtra):])
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		out[key] = append(out[key], values...)
	}
	return out
}
