package accounts_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/controllers/accounts"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// TestAccounts: each namespace gets its account, and gets it again; one in which it cannot be
// made is tried again later and later, and keeps no other waiting.
func TestAccounts(t *testing.T) {
	const path = "POST /api/v1/namespaces/"
	tried := func(w *controllertest.FakeAPI, namespace string) (n int) {
		for _, call := range w.Calls() {
			if call == path+namespace+"/serviceaccounts" {
				n++
			}
		}
		return n
	}
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Refuse = func(method, path string) error {
			if method == http.MethodPost && strings.Contains(path, "/namespaces/a/") {
				return errors.New("exceeded quota")
			}
			return nil
		}
		w.Set("namespaces", "", "a", `{}`)
		w.Set("namespaces", "", "b", `{}`)
		w.Set("namespaces", "", "going", `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"}}`)
		controllertest.Advance(10 * time.Minute)
		if n := tried(w, "a"); n < 30 || n > 60 {
			t.Errorf("tried %d times in ten minutes", n)
		}
		there := func(namespace string, want bool) {
			t.Helper()
			if got := w.Read("serviceaccounts", namespace, "default") != ""; got != want {
				t.Errorf("the account of %s is there: %v", namespace, got)
			}
		}
		there("a", false)
		there("b", true)
		there("going", false)
		w.Set("serviceaccounts", "b", "default", "")
		controllertest.Advance(time.Millisecond)
		there("b", true)
		w.Refuse = nil
		controllertest.Advance(16 * time.Second)
		there("a", true)
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&accounts.Default{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}}).Run
	})
}

// TestTokensOfUnreadableAccounts: a token Secret is not deleted while its service account is unreadable.
func TestTokensOfUnreadableAccounts(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("serviceaccounts", "a", "robot", `{"metadata":{"uid":"1"}}`)
		w.Seal("serviceaccounts", "a", "robot")
		w.Set("secrets", "a", "s", `{"type":"kubernetes.io/service-account-token","metadata":{"annotations":{"kubernetes.io/service-account.name":"robot"}}}`)
		controllertest.Advance(time.Hour)
		if w.Read("secrets", "a", "s") == "" {
			t.Error("the Secret is gone")
		}
		w.Set("serviceaccounts", "a", "robot", "")
		controllertest.Advance(time.Hour)
		if w.Read("secrets", "a", "s") != "" {
			t.Error("the Secret of an account that is gone is there")
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&accounts.Tokens{
			Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return nil, nil }},
			Issue: func(string, string, string, string) (string, error) { return "token", nil },
		}).Run
	})
}
