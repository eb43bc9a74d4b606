package bootstrap_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx/bootstrap"
)

type secrets map[string]bootstrap.Secret

func (s secrets) BootstrapSecret(_ context.Context, name string) (bootstrap.Secret, bool, error) {
	if name == "bootstrap-token-broken" {
		return bootstrap.Secret{}, false, errors.New("the store is down")
	}
	secret, ok := s[name]
	return secret, ok, nil
}

// TestTokens: a token authenticates while its Secret is valid in every respect; otherwise it is
// unknown, and the answer gives no reason.
func TestTokens(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	data := func(change map[string]string) map[string][]byte {
		d := map[string][]byte{"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true")}
		for k, v := range change {
			d[k] = []byte(v)
		}
		return d
	}
	const good = "abcdef.0123456789abcdef"
	for _, tc := range []struct {
		name, token string
		change      map[string]string
		other       func(*bootstrap.Secret)
		groups      []string // nil: not known
	}{
		{"good", good, nil, nil, []string{"system:bootstrappers"}},
		{"groups", good, map[string]string{"auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a:c"}, nil, []string{"system:bootstrappers", "system:bootstrappers:a:c", "system:bootstrappers:b"}},
		{"ends later", good, map[string]string{"expiration": "2030-01-01T00:00:01Z"}, nil, []string{"system:bootstrappers"}},
		{"ends now", good, map[string]string{"expiration": "2030-01-01T00:00:00Z"}, nil, nil},
		{"ends sometime", good, map[string]string{"expiration": "tomorrow"}, nil, nil},
		{"another secret", "abcdef.0123456789abcdee", nil, nil, nil},
		{"no such token", "fedcba.0123456789abcdef", nil, nil, nil},
		{"another id in it", good, map[string]string{"token-id": "fedcba"}, nil, nil},
		{"empty secret", good, map[string]string{"token-secret": ""}, nil, nil},
		{"not for this", good, map[string]string{"usage-bootstrap-authentication": "false"}, nil, nil},
		{"not quite for this", good, map[string]string{"usage-bootstrap-authentication": "TRUE"}, nil, nil},
		{"a group of others", good, map[string]string{"auth-extra-groups": "system:masters"}, nil, nil},
		{"a group like ours", good, map[string]string{"auth-extra-groups": "system:bootstrappers:a,system:bootstrappers"}, nil, nil},
		{"another type", good, nil, func(s *bootstrap.Secret) { s.Type = "Opaque" }, nil},
		{"going", good, nil, func(s *bootstrap.Secret) { s.Deleting = true }, nil},
		{"too short", "abcdef.0123456789abcde", nil, nil, nil},
		{"upper case", "ABCDEF.0123456789abcdef", nil, nil, nil},
		{"more lines", good + "\n", nil, nil, nil},
	} {
		s := bootstrap.Secret{Type: bootstrap.SecretType, Data: data(tc.change)}
		if tc.other != nil {
			tc.other(&s)
		}
		before := maps.Clone(s.Data)
		a := &bootstrap.Authenticator{Secrets: secrets{"bootstrap-token-abcdef": s}, Clock: func() time.Time { return now }}
		who, mine, err := a.AuthenticateToken(t.Context(), tc.token, nil)
		if err != nil || mine != (tc.groups != nil) || (who != nil) != mine {
			t.Errorf("%s: %v %v %v", tc.name, who, mine, err)
			continue
		}
		if mine && (who.Identity.Name != "system:bootstrap:abcdef" || !slices.Equal(who.Identity.Groups, tc.groups)) {
			t.Errorf("%s: %+v", tc.name, who.Identity)
		}
		if len(before) != len(s.Data) {
			t.Errorf("%s: the Secret was changed", tc.name)
		}
	}
	a := &bootstrap.Authenticator{Secrets: secrets{}}
	if who, mine, err := a.AuthenticateToken(t.Context(), "broken.0123456789abcdef", nil); err == nil || !mine || who != nil {
		t.Errorf("without a store: %v %v %v", who, mine, err)
	}
}

// TestStillValid: a token of a request that lasts is valid until its Secret would no longer authenticate the same user in the same
// groups. The end of its time does not count, nor does a store that fails.
func TestStillValid(t *testing.T) {
	const extra, started = "system:bootstrappers:a,system:bootstrappers:b", "2030-01-01T00:00:00Z"
	for _, tc := range []struct {
		name   string
		change func(secrets, *bootstrap.Secret)
		stands bool
	}{
		{"nothing", func(secrets, *bootstrap.Secret) {}, true},
		{"another group", func(_ secrets, s *bootstrap.Secret) {
			s.Data["auth-extra-groups"] = []byte(extra + ",system:bootstrappers:c")
		}, true},
		{"expired", func(_ secrets, s *bootstrap.Secret) { s.Data["expiration"] = []byte("2029-01-01T00:00:00Z") }, true},
		{"a group less", func(_ secrets, s *bootstrap.Secret) { s.Data["auth-extra-groups"] = []byte("system:bootstrappers:a") }, false},
		{"no groups", func(_ secrets, s *bootstrap.Secret) { delete(s.Data, "auth-extra-groups") }, false},
		{"invalid groups", func(_ secrets, s *bootstrap.Secret) { s.Data["auth-extra-groups"] = []byte(extra + ",system:masters") }, false},
		{"another secret", func(_ secrets, s *bootstrap.Secret) { s.Data["token-secret"] = []byte("0123456789abcdee") }, false},
		{"another ID", func(_ secrets, s *bootstrap.Secret) { s.Data["token-id"] = []byte("fedcba") }, false},
		{"another type", func(_ secrets, s *bootstrap.Secret) { s.Type = "Opaque" }, false},
		{"another use", func(_ secrets, s *bootstrap.Secret) { delete(s.Data, "usage-bootstrap-authentication") }, false},
		{"deleted", func(_ secrets, s *bootstrap.Secret) { s.Deleting = true }, false},
		{"gone", func(all secrets, _ *bootstrap.Secret) { delete(all, "bootstrap-token-abcdef") }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &bootstrap.Secret{Type: bootstrap.SecretType, Data: map[string][]byte{
				"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"),
				"auth-extra-groups": []byte(extra), "expiration": []byte("2030-01-01T01:00:00Z"),
			}}
			now, err := time.Parse(time.RFC3339, started)
			if err != nil {
				t.Fatal(err)
			}
			all := secrets{"bootstrap-token-abcdef": *s}
			a := &bootstrap.Authenticator{Secrets: all, Clock: func() time.Time { return now }}
			who, _, err := a.AuthenticateToken(t.Context(), "abcdef.0123456789abcdef", nil)
			if err != nil || who == nil {
				t.Fatal(who, err)
			}
			tc.change(all, s)
			if _, there := all["bootstrap-token-abcdef"]; there {
				all["bootstrap-token-abcdef"] = *s
			}
			if stands := who.StillValid(t.Context()); stands != tc.stands {
				t.Errorf("the token is valid: %t", stands)
			}
		})
	}
}
