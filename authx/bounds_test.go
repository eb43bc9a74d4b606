package authx_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
)

// counting judges every token as good, and counts them.
type counting struct{ seen int }

func (c *counting) AuthenticateToken(context.Context, string, []string) (*authx.Authenticated, bool, error) {
	c.seen++
	return &authx.Authenticated{Identity: &authx.Identity{Name: "jane"}}, true, nil
}

// TestLongTokens: longer tokens are refused before they are examined, whichever way they arrive.
func TestLongTokens(t *testing.T) {
	for _, length := range []int{authx.MaxToken, authx.MaxToken + 1} {
		c := &counting{}
		tokens := authx.TokenChain{c}
		token := strings.Repeat("x", length)
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		_, _, err := authx.Bearer{Tokens: tokens}.Authenticate(r)
		_, ok, reviewed := authx.Review(t.Context(), tokens, true, token, nil)
		if length <= authx.MaxToken {
			if err != nil || !ok || c.seen != 2 {
				t.Errorf("%d: %v %v, seen %d times", length, err, ok, c.seen)
			}
			continue
		}
		if !errors.Is(err, authx.ErrLongToken) || ok || !errors.Is(reviewed, authx.ErrLongToken) || c.seen != 0 {
			t.Errorf("%d: %v %v %v, seen %d times", length, err, ok, reviewed, c.seen)
		}
	}
}

// TestNameless: a chain never returns an identity without a name, whatever its authenticators
// return.
func TestNameless(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer token")
	nobody := fake{mine: true}
	for name, a := range map[string]authx.Authenticator{
		"chain":           authx.Chain{nobody},
		"open chain":      authx.AllowAnonymous{Next: authx.Chain{nobody}},
		"token":           authx.Chain{authx.Bearer{Tokens: authx.TokenChain{nobody}}},
		"token by itself": authx.Chain{authx.Bearer{Tokens: nobody}},
	} {
		r := r.Clone(t.Context())
		who, mine, err := a.Authenticate(r)
		if who != nil || !mine || !errors.Is(err, authx.ErrNameless) {
			t.Errorf("%s: %v %v %v", name, who, mine, err)
		}
	}
	if who, ok, err := authx.Review(t.Context(), nobody, true, "token", nil); ok || who != nil || !errors.Is(err, authx.ErrNameless) {
		t.Errorf("reviewed: %v %v %v", who, ok, err)
	}
	who, _, err := authx.Chain{nobody, fake{mine: true, name: "jane"}}.Authenticate(r)
	if err != nil || who.Identity.Name != "jane" {
		t.Errorf("who has a name: %v %v", who, err)
	}
}

// TestFailureLog: a failure is logged once, and again after a success in
// between, but not more often than once a minute.
func TestFailureLog(t *testing.T) {
	now, notes := time.Now(), 0
	c := &authx.FailureLog{Report: func(error) { notes++ }, Clock: func() time.Time { return now }}
	bad := errors.New("down")
	for i, step := range []struct {
		err   error
		after time.Duration
		notes int
	}{
		{nil, 0, 0}, {bad, 0, 1}, {bad, time.Hour, 1}, {nil, 0, 1}, {bad, time.Hour, 2}, {nil, 0, 2}, {bad, time.Second, 2}, {bad, time.Minute, 3}, {bad, time.Hour, 3},
	} {
		now = now.Add(step.after)
		if c.Note(step.err); notes != step.notes {
			t.Errorf("step %d: reported %d times, want %d", i, notes, step.notes)
		}
	}
}
