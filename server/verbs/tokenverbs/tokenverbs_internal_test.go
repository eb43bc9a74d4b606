package tokenverbs

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/verbs"
)

func tokenRequest(seconds int64) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
}

func TestValidate(t *testing.T) {
	for seconds, want := range map[int64]string{
		599: "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes", 600: "", 1 << 32: "",
		1<<32 + 1: "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds", -1: "less than 10 minutes", 0: "less than 10 minutes",
	} {
		errs := validate(tokenRequest(seconds))
		if (len(errs) > 0) != (want != "") || len(errs) > 0 && !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%d: %v", seconds, errs)
		}
	}
}

// TestAge: lifetimes of tokens, and their warnings.
func TestAge(t *testing.T) {
	now := time.Unix(1e9, 0)
	api := []string{"api", "other"}
	pod := &authx.Ref{Name: "p"}
	for _, tc := range []struct {
		name           string
		cfg            Config
		seconds        int64
		grant          authx.Grant
		lives, renewed time.Duration
		answered       int64
		warning        string
	}{
		{"an hour", Config{Extend: true}, 3600, authx.Grant{Pod: pod, Audiences: api}, time.Hour, 0, 3600, ""},
		{"extended", Config{Extend: true}, 3607, authx.Grant{Pod: pod, Audiences: []string{"other", "api"}}, 365 * 24 * time.Hour, 3607 * time.Second, 3607, ""},
		{"not extended here", Config{}, 3607, authx.Grant{Pod: pod, Audiences: api}, 3607 * time.Second, 0, 3607, ""},
		{"extended as far as the signer takes on", Config{Extend: true, MaxExtended: 2 * time.Hour}, 3607, authx.Grant{Pod: pod, Audiences: []string{"other", "api"}}, 2 * time.Hour, 3607 * time.Second, 3607, ""},
		{"without a pod", Config{Extend: true}, 3607, authx.Grant{Audiences: api}, 3607 * time.Second, 0, 3607, ""},
		{"for one audience", Config{Extend: true}, 3607, authx.Grant{Pod: pod, Audiences: api[:1]}, 3607 * time.Second, 0, 3607, ""},
		{"for others", Config{Extend: true}, 3607, authx.Grant{Pod: pod, Audiences: []string{"api", "other", "vault"}}, 3607 * time.Second, 0, 3607, ""},
		{"too long", Config{MaxAge: 2 * time.Hour}, 90000, authx.Grant{}, 2 * time.Hour, 0, 7200, `299 - "requested expiration of 90000 seconds shortened to 7200 seconds"`},
		{"as long as may be", Config{MaxAge: 2 * time.Hour}, 7200, authx.Grant{}, 2 * time.Hour, 0, 7200, ""},
	} {
		tc.cfg.Audiences, tc.grant.Issued = api, now
		header := http.Header{}
		req := tokenRequest(tc.seconds)
		tc.cfg.age(&verbs.Call{Request: answers.Request{Scope: request.NewScope(header, now)}}, req, &tc.grant)
		if got := tc.grant.Expires.Sub(now); got != tc.lives || *req.Spec.ExpirationSeconds != tc.answered || header.Get("Warning") != tc.warning {
			t.Errorf("%s: lives %s, answered %d, %q", tc.name, got, *req.Spec.ExpirationSeconds, header.Get("Warning"))
		}
		if renewed := tc.grant.WarnAfter; renewed.IsZero() != (tc.renewed == 0) || tc.renewed != 0 && renewed.Sub(now) != tc.renewed {
			t.Errorf("%s: to be renewed at %s", tc.name, renewed)
		}
	}
}

// TestFill: the review of an invalid token does not reveal its user.
func TestFill(t *testing.T) {
	who := &authx.Authenticated{Identity: &authx.Identity{Name: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}, Audiences: []string{"api"}}
	var good, bad authenticationv1.TokenReview
	fill(&good, who, true, nil)
	want := authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"api"}, User: authenticationv1.UserInfo{
		Username: "u", UID: "1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
	}}
	if !reflect.DeepEqual(good.Status, want) {
		t.Errorf("%+v", good.Status)
	}
	fill(&bad, who, false, errors.New("why"))
	if !reflect.DeepEqual(bad.Status, authenticationv1.TokenReviewStatus{Error: "why"}) {
		t.Errorf("%+v", bad.Status)
	}
}

func TestHandlers(t *testing.T) {
	if all := Handlers(Config{}); all["serviceaccounts/token"] != nil || all["tokenreviews.authentication.k8s.io"] == nil {
		t.Error("a server that issues no tokens offers to")
	}
	issue := func(context.Context, *authx.Grant) (string, string, error) { return "", "", nil }
	review := func(context.Context, string, []string) (*authx.Authenticated, bool, error) { return nil, false, nil }
	if all := Handlers(Config{Issue: issue, Review: review}); len(all) != 2 {
		t.Errorf("%d handlers", len(all))
	}
}
