package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/controllers/accounts"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// TestRootCABurst: however often a namespace changes while others are worked on, a failure there is one failure: its
// ConfigMap is not tried by several at once, and is not left alone the longer for it.
func TestRootCABurst(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Refuse = func(method, path string) error {
			if method != http.MethodPost {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
			if strings.Contains(path, "/namespaces/a/") {
				return errors.New("exceeded quota")
			}
			return nil
		}
		w.Set("namespaces", "", "other", `{}`)
		controllertest.Advance(time.Millisecond)
		for i := range 12 {
			w.Set("namespaces", "", "a", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
		}
		controllertest.Advance(500 * time.Millisecond)
		tries := 0
		for _, call := range w.Calls() {
			if strings.HasPrefix(call, "POST /api/v1/namespaces/a/") {
				tries++
			}
		}
		if tries != 1 {
			t.Errorf("tried %d times in half a second", tries)
		}
		w.Refuse = nil
		controllertest.Advance(3 * time.Second)
		if w.Read("configmaps", "a", accounts.RootCAMap) == "" {
			t.Error("the ConfigMap is not there")
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&accounts.RootCA{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte("PEM"), nil }}}).Run
	})
}

func TestRootCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var pem atomic.Value
		pem.Store("first")
		want := func(step, namespace, text string) {
			t.Helper()
			synctest.Wait()
			var m struct {
				Metadata metav1.ObjectMeta
				Data     map[string]string
			}
			there := c.Get("configmaps", namespace, "kube-root-ca.crt", &m)
			if there != (text != "") || m.Data["ca.crt"] != text || there && m.Metadata.Annotations["kubernetes.io/description"] == "" {
				t.Errorf("%s: %s has %+v", step, namespace, m)
			}
		}
		namespace := func(name string, going bool) {
			m := metav1.ObjectMeta{Name: name}
			if going {
				m.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			c.Set("namespaces", "", name, map[string]any{"metadata": m})
		}
		namespace("a", false)
		r := &accounts.RootCA{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte(pem.Load().(string)), nil }}}
		go func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		want("a namespace that was there", "a", "first")
		namespace("b", false)
		want("a new namespace", "b", "first")
		namespace("c", true)
		want("a namespace that is going", "c", "")
		c.Set("configmaps", "a", "kube-root-ca.crt", nil)
		want("deleted", "a", "first")
		c.Set("configmaps", "a", "kube-root-ca.crt", map[string]any{"metadata": metav1.ObjectMeta{Name: "kube-root-ca.crt"}, "data": map[string]string{"ca.crt": "forged", "more": "x"}})
		want("forged", "a", "first")
		c.Set("configmaps", "a", "another", map[string]any{"metadata": metav1.ObjectMeta{Name: "another"}})
		namespace("a", false)
		c.Lock()
		c.Fail = 1
		c.Unlock()
		namespace("d", false)
		want("a write fails", "d", "")
		time.Sleep(2 * time.Second)
		want("and is tried again", "d", "first")
		synctest.Wait()
		c.Written()
		pem.Store("second")
		time.Sleep(2 * time.Minute)
		want("another authority", "b", "second")
		if w := c.Written(); len(w) != 3 {
			t.Errorf("three namespaces: %q", w)
		}
	})
}

// With Base.Debounce set, the controller waits for that long before it writes to a namespace.
func TestRootCARests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.Set("namespaces", "", "before", corev1.Namespace{})
		r := &accounts.RootCA{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: 5 * time.Second}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte("authority"), nil }}}
		go func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		expect := func(when string, names ...string) {
			t.Helper()
			synctest.Wait()
			for _, name := range []string{"before", "later", "changed"} {
				if there := c.Cache.Get("configmaps", name, "kube-root-ca.crt") != nil; there != slices.Contains(names, name) {
					t.Errorf("%s: %s has the authority: %v", when, name, there)
				}
			}
		}
		time.Sleep(3 * time.Second)
		c.Set("namespaces", "", "later", corev1.Namespace{})
		time.Sleep(time.Second)
		c.Set("namespaces", "", "changed", corev1.Namespace{})
		expect("at first")
		time.Sleep(time.Second)
		expect("after five seconds", "before")
		for range 3 { // what changes again and again is not put off
			time.Sleep(time.Second)
			c.Set("namespaces", "", "changed", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"at": time.Now().String()}}})
		}
		expect("after eight seconds", "before", "later")
		time.Sleep(time.Second)
		expect("after nine seconds", "before", "later", "changed")
	})
}

// TestRootCARefused: a ConfigMap that cannot be written, such as an immutable one, does not
// keep other namespaces from getting theirs.
func TestRootCARefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		c.Refuse = "a/configmaps/kube-root-ca.crt"
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		yes := true
		c.Set("namespaces", "", "a", corev1.Namespace{})
		c.Set("configmaps", "a", "kube-root-ca.crt", corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"ca.crt": "mine"}})
		c.Set("namespaces", "", "b", corev1.Namespace{})
		r := &accounts.RootCA{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}, Authority: reconcile.Authority{Read: func() ([]byte, error) { return []byte("authority"), nil }}}
		go func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		for _, namespace := range []string{"b", "later"} {
			c.Set("namespaces", "", namespace, corev1.Namespace{})
			synctest.Wait()
			if c.Cache.Get("configmaps", namespace, "kube-root-ca.crt") == nil {
				t.Errorf("%s has no ConfigMap kube-root-ca.crt", namespace)
			}
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := len(c.Written()); n > 350 {
			t.Errorf("%d writes in a day", n)
		}
	})
}
