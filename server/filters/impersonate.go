package filters

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sort"
	"strings"

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

// Bounds for impersonation: each part of the identity is authorized, for any user who sends the headers, and before the request
// has a seat.
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

// Impersonate lets a user act as another, if it may impersonate each part of that identity. It removes the headers.
func Impersonate(z authx.Authorizer, log *slog.Logger, fail Fail) Filter {
	gate := authx.NewGate(authx.GateConfig{What: "impersonation", All: maxImpersonating, Each: eachImpersonates, Source: connection})
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !impersonates(r.Header) || impersonated(z, gate, log, fail, w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// impersonated replaces the user, or answers the request if the user may not impersonate.
func impersonated(z authx.Authorizer, gate *authx.Gate, log *slog.Logger, fail Fail, w http.ResponseWriter, r *http.Request) bool {
	s := request.From(r.Context())
	if n := parts(r.Header); n > maxParts {
		fail(w, r, apierrors.NewBadRequest(fmt.Sprintf("an identity of %d parts cannot be impersonated: it may have %d", n, maxParts)))
		return false
	}
	who, claims, err := wanted(r.Header)
	if err != nil {
		log.Debug("impersonation refused", "error", err)
		internal(w, r, err)
		return false
	}
	if who == nil {
		strip(r.Header) // the headers name no user; later handlers must not see them
		return true
	}
	leave, err := gate.Enter(r.Context())
	if err != nil {
		s.Terminated = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "1")
		fail(w, r, apierrors.NewTooManyRequests("too many requests want to impersonate somebody at once, please try again later", 1))
		return false
	}
	defer leave()
	for i := range claims {
		a := &claims[i].attributes
		a.User, a.Verb, a.ResourceRequest = s.User, "impersonate", true
		d, reason, err := z.Authorize(r.Context(), a)
		if d == authx.Allow {
			continue
		}
		if err != nil {
			log.Debug("impersonation refused", "error", err)
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fail(w, r, permits.Forbidden(a, reason))
		return false
	}
	s.Actor, s.User = s.User, who
	strip(r.Header)
	return true
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

// connection is the connection of a request, or nil.
func connection(ctx context.Context) any {
	if c := wire.From(ctx); c != nil {
		return c
	}
	return nil
}

// impersonates says whether the request has a header of impersonation.
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
	keys := make([]string, 0, len(extra))
	for k := range extra {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
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
	return append(groups, add)
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
