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
	tried := func(w *controllertest.World, namespace string) (n int) {
		for _, call := range w.Took() {
			if call == path+namespace+"/serviceaccounts" {
				n++
			}
		}
		return n
	}
	controllertest.During(t, func(w *controllertest.World) {
		w.Refuse = func(method, path string) error {
			if method == http.MethodPost && strings.Contains(path, "/namespaces/a/") {
				return errors.New("exceeded quota")
			}
			return nil
		}
		w.Set("namespaces", "", "a", `{}`)
		w.Set("namespaces", "", "b", `{}`)
		w.Set("namespaces", "", "going", `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"}}`)
		controllertest.Pass(10 * time.Minute)
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
		controllertest.Pass(time.Millisecond)
		there("b", true)
		w.Refuse = nil
		controllertest.Pass(16 * time.Second)
		there("a", true)
	}, func(w *controllertest.World) func(context.Context) error {
		return (&accounts.Default{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.Quiet}}).Run
	})
}

// TestTokensOfUnreadableAccounts: a token Secret is not deleted while its service account is unreadable.
func TestTokensOfUnreadableAccounts(t *testing.T) {
	controllertest.During(t, func(w *controllertest.World) {
		w.Set("serviceaccounts", "a", "robot", `{"metadata":{"uid":"1"}}`)
		w.Seal("serviceaccounts", "a", "robot")
		w.Set("secrets", "a", "s", `{"type":"kubernetes.io/service-account-token","metadata":{"annotations":{"kubernetes.io/service-account.name":"robot"}}}`)
		controllertest.Pass(time.Hour)
		if w.Read("secrets", "a", "s") == "" {
			t.Error("the Secret is gone")
		}
		w.Set("serviceaccounts", "a", "robot", "")
		controllertest.Pass(time.Hour)
		if w.Read("secrets", "a", "s") != "" {
			t.Error("the Secret of an account that is gone is there")
		}
	}, func(w *controllertest.World) func(context.Context) error {
		return (&accounts.Tokens{
			Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.Quiet}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return nil, nil }},
			Issue: func(string, string, string, string) (string, error) { return "token", nil },
		}).Run
	})
}
