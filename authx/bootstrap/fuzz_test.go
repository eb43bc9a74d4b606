package bootstrap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx/bootstrap"
)

// FuzzToken: exactly one token is valid, and the groups of its Secret are limited to those
// that bootstrappers may have.
func FuzzToken(f *testing.F) {
	const good = "abcdef.0123456789abcdef"
	f.Add(good, "system:bootstrappers:a", "")
	f.Add("abcdef.", "system:masters", "2030-01-01T00:00:00Z")
	f.Add("../bcdef.0123456789abcdef", ",", "x")
	f.Fuzz(func(t *testing.T, token, groups, expiration string) {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		data := map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups": []byte(groups), "expiration": []byte(expiration),
		}
		a := &bootstrap.Authenticator{
			Secrets: secrets{"bootstrap-token-abcdef": {Type: bootstrap.SecretType, Data: data}},
			Clock:   func() time.Time { return now },
		}
		for _, sent := range []string{token, good} {
			who, mine, err := a.AuthenticateToken(t.Context(), sent, nil)
			if err != nil || !mine {
				continue
			}
			if sent != good || who.Identity.Name != "system:bootstrap:abcdef" {
				t.Fatalf("%q is %v", sent, who.Identity)
			}
			for _, g := range who.Identity.Groups {
				if g != "system:bootstrappers" && !strings.HasPrefix(g, "system:bootstrappers:") {
					t.Fatalf("groups %q give %q", groups, g)
				}
			}
			if ends, err := time.Parse(time.RFC3339, expiration); err == nil && !now.Before(ends) {
				t.Fatalf("accepted after %q", expiration)
			}
		}
	})
}
