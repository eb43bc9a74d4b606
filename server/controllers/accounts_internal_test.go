package controllers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAccounts: each namespace gets its account, and gets it again; one in which it cannot be
// made is tried again later and later, and keeps no other waiting.
func TestAccounts(t *testing.T) {
	const path = "POST /api/v1/namespaces/"
	tried := func(w *world, namespace string) (n int) {
		for _, call := range w.took() {
			if call == path+namespace+"/serviceaccounts" {
				n++
			}
		}
		return n
	}
	during(t, func(w *world) {
		w.refuse = func(method, path string) error {
			if method == http.MethodPost && strings.Contains(path, "/namespaces/a/") {
				return errors.New("exceeded quota")
			}
			return nil
		}
		w.set("namespaces", "", "a", `{}`)
		w.set("namespaces", "", "b", `{}`)
		w.set("namespaces", "", "going", `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"}}`)
		pass(10 * time.Minute)
		if n := tried(w, "a"); n < 30 || n > 60 {
			t.Errorf("tried %d times in ten minutes", n)
		}
		there := func(namespace string, want bool) {
			t.Helper()
			if got := w.read("serviceaccounts", namespace, "default") != ""; got != want {
				t.Errorf("the account of %s is there: %v", namespace, got)
			}
		}
		there("a", false)
		there("b", true)
		there("going", false)
		w.set("serviceaccounts", "b", "default", "")
		pass(time.Millisecond)
		there("b", true)
		w.refuse = nil
		pass(mostAccountRest + time.Second)
		there("a", true)
	}, func(w *world) func(context.Context) error {
		return (&Accounts{API: w, Cache: w.cache, Log: quiet}).Run
	})
}

// TestTokensOfUnreadableAccounts: a Secret stays while nobody can read the account that it is of.
func TestTokensOfUnreadableAccounts(t *testing.T) {
	during(t, func(w *world) {
		w.set("serviceaccounts", "a", "robot", `{"metadata":{"uid":"1"}}`)
		w.seal("serviceaccounts", "a", "robot")
		w.set("secrets", "a", "s", `{"type":"kubernetes.io/service-account-token","metadata":{"annotations":{"kubernetes.io/service-account.name":"robot"}}}`)
		pass(time.Hour)
		if w.read("secrets", "a", "s") == "" {
			t.Error("the Secret is gone")
		}
		w.set("serviceaccounts", "a", "robot", "")
		pass(time.Hour)
		if w.read("secrets", "a", "s") != "" {
			t.Error("the Secret of an account that is gone is there")
		}
	}, func(w *world) func(context.Context) error {
		return (&AccountTokens{
			API: w, Cache: w.cache, Log: quiet, PEM: func() ([]byte, error) { return nil, nil },
			Issue: func(string, string, string, string) (string, error) { return "token", nil },
		}).Run
	})
}
