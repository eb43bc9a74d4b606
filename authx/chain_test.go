package authx_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"net/http"

	"github.com/rowlock/rowlock/authx"
)

type fake struct {
	name string
	mine bool
	err  error
}

func (f fake) answer() (*authx.Authenticated, bool, error) {
	if f.err != nil || !f.mine {
		return nil, f.mine, f.err
	}
	return &authx.Authenticated{Identity: &authx.Identity{Name: f.name}, CertificateEnds: time.Unix(1, 0)}, true, nil
}

func (f fake) Authenticate(*http.Request) (*authx.Authenticated, bool, error) { return f.answer() }

func (f fake) AuthenticateToken(context.Context, string, []string) (*authx.Authenticated, bool, error) {
	return f.answer()
}

func TestChain(t *testing.T) {
	bad := errors.New("bad credential")
	for _, tc := range []struct {
		name string
		in   []authx.Authenticator
		want string
		err  bool
	}{
		{"nothing", nil, "", false},
		{"first that succeeds", []authx.Authenticator{fake{}, fake{name: "a", mine: true}, fake{name: "b", mine: true}}, "a", false},
		{"later success beats an earlier error", []authx.Authenticator{fake{err: bad, mine: true}, fake{name: "b", mine: true}}, "b", false},
		{"an error alone refuses", []authx.Authenticator{fake{}, fake{err: bad, mine: true}}, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			who, mine, err := authx.Chain(tc.in).Authenticate(httptest.NewRequest("GET", "/", nil))
			if (err != nil) != tc.err || tc.err && !errors.Is(err, bad) {
				t.Fatalf("err = %v", err)
			}
			if tc.want == "" {
				if who != nil || mine != tc.err {
					t.Fatalf("who = %v, mine = %v", who, mine)
				}
				return
			}
			if who.CertificateEnds.IsZero() {
				t.Error("the chain has lost when the certificate ends")
			}
			if who.Identity.Name != tc.want || !who.Identity.InGroup(authx.GroupAuthenticated) {
				t.Fatalf("identity = %+v", who.Identity)
			}
		})
	}
}

func TestAllowAnonymous(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	who, mine, err := authx.AllowAnonymous{Next: authx.Chain{}}.Authenticate(r)
	if err != nil || !mine || who.Identity.Name != authx.Anonymous || who.Identity.InGroup(authx.GroupAuthenticated) {
		t.Fatalf("%v %v %v", who, mine, err)
	}
	_, _, err = authx.AllowAnonymous{Next: authx.Chain{fake{mine: true, err: errors.New("bad")}}}.Authenticate(r)
	if err == nil {
		t.Fatal("a bad credential fell through to anonymous")
	}
}

func TestBearer(t *testing.T) {
	known := fake{name: "u", mine: true}
	for _, tc := range []struct {
		header string
		tokens authx.TokenAuthenticator
		who    string
		mine   bool
		err    bool
	}{
		{"", known, "", false, false},
		{"Basic abc", known, "", false, false},
		{"Bearer", known, "", false, false},
		{"Bearer ", known, "", false, false},
		{"Bearer  x", known, "", false, false},
		{"Bearer x", known, "u", true, false},
		{"bearer x extra", known, "u", true, false},
		{"Bearer x", fake{}, "", true, true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", tc.header)
		who, mine, err := authx.Bearer{Tokens: tc.tokens}.Authenticate(r)
		if mine != tc.mine || (err != nil) != tc.err || (who != nil) != (tc.who != "") {
			t.Errorf("%q: %v %v %v", tc.header, who, mine, err)
		}
		if tc.who != "" && r.Header.Get("Authorization") != "" {
			t.Errorf("%q: the credential is still in the request", tc.header)
		}
	}
}

type decide struct {
	d      authx.Decision
	reason string
	err    error
}

func (d decide) Authorize(context.Context, *authx.Attributes) (authx.Decision, string, error) {
	return d.d, d.reason, d.err
}

func TestAuthorizerChain(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		in     authx.AuthorizerChain
		want   authx.Decision
		reason string
		err    error
	}{
		{"empty", nil, authx.NoOpinion, "", nil},
		{"allow after no opinion", authx.AuthorizerChain{decide{}, decide{d: authx.Allow, reason: "r"}}, authx.Allow, "r", nil},
		{"deny stops", authx.AuthorizerChain{decide{d: authx.Deny, reason: "no"}, decide{d: authx.Allow}}, authx.Deny, "no", nil},
		{"error kept when nobody decides", authx.AuthorizerChain{decide{err: boom}, decide{reason: "x"}}, authx.NoOpinion, "x", boom},
		{"error forgotten when somebody allows", authx.AuthorizerChain{decide{err: boom}, decide{d: authx.Allow}}, authx.Allow, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, reason, err := tc.in.Authorize(context.Background(), &authx.Attributes{})
			if d != tc.want || reason != tc.reason || !errors.Is(err, tc.err) {
				t.Fatalf("%v %q %v", d, reason, err)
			}
		})
	}
}

func TestMasters(t *testing.T) {
	for group, want := range map[string]authx.Decision{authx.GroupMasters: authx.Allow, "system:master": authx.NoOpinion} {
		d, _, _ := authx.SystemMasters{}.Authorize(context.Background(), &authx.Attributes{User: &authx.Identity{Groups: []string{group}}})
		if d != want {
			t.Errorf("%s: %v", group, d)
		}
	}
}

// lists is a resolver that has a problem.
type lists struct{ err error }

func (l lists) RulesFor(context.Context, *authx.Identity, string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	return nil, nil, l.err != nil, l.err
}

// TestRulesProblems: the problems of several authorizers are reported once, without nested brackets.
func TestRulesProblems(t *testing.T) {
	hook := lists{errors.New("webhook authorizer does not support user rule resolution")}
	rbac := lists{authx.Problems{"role a not found", "role b not found", "role a not found"}}
	for _, tc := range []struct {
		list authx.Resolvers
		want string
	}{
		{authx.Resolvers{hook, hook}, "webhook authorizer does not support user rule resolution"},
		{authx.Resolvers{rbac}, "[role a not found, role b not found]"},
		{authx.Resolvers{hook, rbac, hook, lists{}}, "[webhook authorizer does not support user rule resolution, role a not found, role b not found]"},
		{authx.Resolvers{lists{}, lists{authx.Problems{"role a not found", "role a not found"}}}, "role a not found"},
	} {
		if _, _, incomplete, err := tc.list.RulesFor(t.Context(), nil, "n"); !incomplete || err == nil || err.Error() != tc.want {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
	if _, _, incomplete, err := (authx.Resolvers{lists{}}).RulesFor(t.Context(), nil, "n"); incomplete || err != nil {
		t.Errorf("%v %v", incomplete, err)
	}
}
