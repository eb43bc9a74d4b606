package filters

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx"
)

// FuzzImpersonate: each part of the requested identity needs authorization, and the identity has no other
// parts.
func FuzzImpersonate(f *testing.F) {
	f.Add("jane", "dev,ops", "u1", "Scopes", "view")
	f.Add("system:serviceaccount:ns:app", "", "", "", "")
	f.Add("system:anonymous", "system:authenticated", "", "Acme.com%2fproject", "x")
	f.Add("", "system:masters", "", "%ZZ", "")
	f.Fuzz(func(t *testing.T, user, groups, uid, key, value string) {
		h := http.Header{}
		parts := 0
		if user != "" {
			h.Set(impersonateUser, user)
			parts++
		}
		var asked []string
		if groups != "" {
			asked = strings.Split(groups, ",")
			h[impersonateGroup] = asked
			parts += len(asked)
		}
		if uid != "" {
			h.Set(impersonateUID, uid)
			parts++
		}
		if key != "" {
			h[impersonateExtra+key] = []string{value}
			parts++
		}
		who, claims, err := wanted(h)
		if err != nil {
			if user != "" || parts == 0 {
				t.Fatalf("%v: %v", h, err)
			}
			return
		}
		if len(claims) != parts || (who == nil) != (parts == 0) {
			t.Fatalf("%v: %d of %d parts are asked for, as %v", h, len(claims), parts, who)
		}
		if who == nil {
			return
		}
		if who.Name != user || who.UID != uid {
			t.Fatalf("%v became %v", h, who)
		}
		for _, g := range who.Groups {
			own := g == authx.GroupAuthenticated || g == authx.GroupUnauthenticated ||
				strings.HasPrefix(user, "system:serviceaccount:") && strings.HasPrefix(g, authx.GroupServiceAccounts)
			if !own && !slices.Contains(asked, g) {
				t.Fatalf("%v is in %q", h, g)
			}
		}
	})
}
