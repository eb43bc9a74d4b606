package authx_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/authx"
)

// anyToken takes every token that is one, for the audiences that the chain asks about.
type anyToken struct{}

func (anyToken) AuthenticateToken(context.Context, string, []string) (*authx.Authenticated, bool, error) {
	return &authx.Authenticated{Identity: &authx.Identity{Name: "u"}}, true, nil
}

// TestReviewedAudiences: a review names the audiences that the token is good for in the order in
// which the request asks for them, and as often.
func TestReviewedAudiences(t *testing.T) {
	tokens := authx.TokenChain{authx.AudienceAgnostic{Tokens: anyToken{}, API: []string{"one", "two", "three"}}}
	for name, c := range map[string]struct {
		token       string
		asked, want []string
	}{
		"all":                   {"t", []string{"one", "two", "three"}, []string{"one", "two", "three"}},
		"some, other way":       {"t", []string{"three", "strange", "one"}, []string{"three", "one"}},
		"one of them two times": {"t", []string{"two", "one", "two"}, []string{"two", "one", "two"}},
		"none asked for":        {"t", nil, []string{"one", "two", "three"}},
		"none of them":          {"t", []string{"strange"}, nil},
		"no token":              {" ", []string{"two", "strange"}, []string{"two", "strange"}},
	} {
		t.Run(name, func(t *testing.T) {
			who, ok, err := authx.Review(t.Context(), tokens, c.token == " ", c.token, c.asked)
			if err != nil && c.want != nil {
				t.Fatal(err)
			}
			if ok != (c.want != nil) {
				t.Fatalf("ok is %v", ok)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(c.want, who.Audiences); diff != "" {
				t.Errorf("audiences (-want +got):\n%s", diff)
			}
			if anonymous := who.Identity.Name == authx.Anonymous; anonymous != (c.token == " ") {
				t.Errorf("it is %s", who.Identity.Name)
			}
		})
	}
	// The result of one review is not visible in others.
	if who, _, _ := (authx.AllowAnonymous{Next: authx.Chain{}}).Authenticate(nil); who.Audiences != nil {
		t.Errorf("anonymous requests are good for %v", who.Audiences)
	}
}
