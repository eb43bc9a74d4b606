package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/accounts"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// TestAccountTokens: Secrets that are to hold a token hold one as long as their account
// is the one that they name, and nothing else is touched.
func TestAccountTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		account := func(name, uid string) {
			c.Set("serviceaccounts", "n", name, corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}})
		}
		secret := func(name, account string, change func(*corev1.Secret)) {
			s := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}}, Type: corev1.SecretTypeServiceAccountToken}
			if change != nil {
				change(&s)
			}
			c.Set("secrets", "n", name, s)
		}
		want := func(step, name, token string) {
			t.Helper()
			synctest.Wait()
			var s corev1.Secret
			if there := c.Get("secrets", "n", name, &s); there != (token != "gone") {
				t.Errorf("%s: %s is there: %v", step, name, there)
			} else if there && string(s.Data["token"]) != token {
				t.Errorf("%s: %s holds %q", step, name, s.Data["token"])
			} else if there && token != "" && (string(s.Data["ca.crt"]) != "authority" || string(s.Data["namespace"]) != "n" || s.Annotations[corev1.ServiceAccountUIDKey] == "") {
				t.Errorf("%s: %s is %+v", step, name, s)
			}
		}
		account("robot", "u1")
		secret("before", "robot", nil)
		secret("mine", "robot", func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("brought"), "more": []byte("x")} })
		issued := 0
		a := &accounts.Tokens{
			Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte("authority"), nil }},
			Issue: func(namespace, account, uid, secret string) (string, error) {
				issued++
				return strings.Join([]string{namespace, account, uid, secret}, "/"), nil
			},
		}
		go func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		want("there before", "before", "n/robot/u1/before")
		want("with a token", "mine", "brought")
		secret("later", "robot", nil)
		want("new", "later", "n/robot/u1/later")
		secret("plain", "robot", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque })
		want("of another type", "plain", "")
		secret("nameless", "", nil)
		want("of no account", "nameless", "")
		secret("lost", "nobody", nil)
		want("of an account that is not there", "lost", "gone")
		secret("other", "robot", func(s *corev1.Secret) { s.Annotations[corev1.ServiceAccountUIDKey] = "u0" })
		want("of an earlier account of the name", "other", "gone")
		secret("leaving", "robot", func(s *corev1.Secret) {
			s.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			s.Finalizers = []string{"a/b"}
		})
		want("that is being deleted", "leaving", "")
		if issued != 2 {
			t.Errorf("%d tokens were signed", issued)
		}
		c.Set("serviceaccounts", "n", "robot", nil)
		for _, name := range []string{"before", "mine", "later"} {
			want("the account is gone", name, "gone")
		}
		account("robot", "u2")
		synctest.Wait() // otherwise the account's event would retry "again" at once
		c.Lock()
		c.Fail = 1
		c.Unlock()
		secret("again", "robot", nil)
		want("a write fails", "again", "")
		time.Sleep(2 * time.Second)
		want("and is tried again", "again", "n/robot/u2/again")
		c.Written()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if w := c.Written(); len(w) > 0 {
			t.Errorf("nothing was to do: %q", w)
		}
	})
}

// TestAccountTokensRefused: a Secret that cannot be written, which its creator can bring about,
// delays no other, and costs less with each attempt.
func TestAccountTokensRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		c.Refuse = "a-stuck"
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		secret := func(namespace, name string) {
			c.Set("serviceaccounts", namespace, "robot", corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", UID: "u1"}})
			c.Set("secrets", namespace, name, corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}}, Type: corev1.SecretTypeServiceAccountToken,
			})
		}
		filled := func(namespace, name string) bool {
			synctest.Wait()
			var s corev1.Secret
			return c.Get("secrets", namespace, name, &s) && string(s.Data["token"]) == "token"
		}
		secret("a", "a-stuck")
		secret("b", "there")
		a := &accounts.Tokens{
			Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte("authority"), nil }},
			Issue: func(string, string, string, string) (string, error) { return "token", nil },
		}
		go func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		if !filled("b", "there") {
			t.Error("a Secret behind one that cannot be written is not filled")
		}
		secret("a", "later")
		if !filled("a", "later") {
			t.Error("one that comes later is not filled")
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := len(c.Written()); n > 350 {
			t.Errorf("%d writes in a day", n)
		}
		c.Lock()
		c.Refuse = ""
		c.Unlock()
		time.Sleep(time.Hour + time.Minute)
		if !filled("a", "a-stuck") {
			t.Error("it is never tried again")
		}
	})
}

// TestAccountAndTokenOfOneCommit: a Secret stays whose account the cache shows later than the Secret.
func TestAccountAndTokenOfOneCommit(t *testing.T) {
	const secret = `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"robot"%s}},"type":"kubernetes.io/service-account-token"}`
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("secrets", "n", "s", fmt.Sprintf(secret, ""))
		controllertest.Advance(999 * time.Millisecond)
		w.Refuse = func(string, string) error { return errors.New("no") } // Commit allows no writes
		w.Commit(func() { controllertest.Advance(time.Second) },
			controllertest.Write{Storage: "serviceaccounts", Namespace: "n", Name: "robot", Text: `{}`},
			controllertest.Write{Storage: "secrets", Namespace: "n", Name: "s", Text: fmt.Sprintf(secret, `,"x":"y"`)},
		)
		controllertest.Advance(time.Minute)
		if calls := w.Calls(); len(calls) == 0 || slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(call, "DELETE") }) {
			t.Errorf("a Secret whose account is there: %q", calls)
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&accounts.Tokens{
			Base:      reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog, Debounce: time.Second},
			Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte("authority"), nil }},
			Issue:     func(string, string, string, string) (string, error) { return "token", nil },
		}).Run
	})
}

// TestAccountTokensPacked: to look for the Secrets of a namespace that hold tokens does not unpack the others.
func TestAccountTokensPacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		c.Cache = cache.NewWith(c.Catalogue, cache.Config{PlainBytes: 1 << 20})
		for i := range 1_000 {
			name := fmt.Sprint("plain-", i)
			c.Set("secrets", "n", name, corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte(strings.Repeat(name+",", 500))}})
		}
		c.Set("secrets", "n", "lost", corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}}, Type: corev1.SecretTypeServiceAccountToken,
		})
		for range 3 {
			c.Cache.Pack(t.Context())
		}
		before := c.Cache.PlainBytes()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := &accounts.Tokens{
			Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte("authority"), nil }},
			Issue: func(string, string, string, string) (string, error) { return "", errors.New("no key") },
		}
		go func() { _ = a.Run(ctx) }()
		synctest.Wait()
		c.Set("serviceaccounts", "n", "other", corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "u1"}})
		synctest.Wait()
		if w := c.Written(); len(w) != 1 {
			t.Errorf("the Secret without an account is not found: %q", w)
		}
		if grown := c.Cache.PlainBytes() - before; before > 1<<20 || grown > 64<<10 {
			t.Errorf("%d bytes are plain, and %d more after the search", before, grown)
		}
	})
}
