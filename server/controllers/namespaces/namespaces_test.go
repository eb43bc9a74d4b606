package namespaces_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/namespaces"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

// The remains of a namespace are deleted: earlier objects at once, later ones a little later, and
// none that belongs to a new namespace of that name.
func TestOrphans(t *testing.T) {
	for name, anyNamespace := range map[string]bool{"as usual": false, "where objects need no namespace": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := controllertest.NewCluster(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n := &namespaces.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: time.Hour}, Catalogue: c.Catalogue, AnyNamespace: anyNamespace}
				ended := make(chan error, 1)
				go func() { ended <- n.Run(ctx) }()
				namespace := func(name string, uid types.UID) {
					c.Set("namespaces", "", name, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: uid}})
				}
				there := func(when, namespace string, want bool) {
					t.Helper()
					synctest.Wait()
					if got := c.Cache.Get("configmaps", namespace, "x") != nil; got != want {
						t.Errorf("%s: the object is there: %v", when, got)
					}
				}
				x := corev1.ConfigMap{}
				c.Set("configmaps", "never", "x", x)
				namespace("a", "1")
				namespace("b", "2")
				c.Set("configmaps", "a", "x", x)
				there("while its namespace is there", "a", true)
				end(c, "a", "1")
				there("made before the end", "a", false)
				end(c, "b", "2")
				time.Sleep(30 * time.Second)
				c.Set("configmaps", "b", "x", x)
				time.Sleep(40 * time.Second)
				there("made after the end", "b", anyNamespace)
				namespace("a", "3")
				c.Set("configmaps", "a", "x", x)
				time.Sleep(time.Hour)
				there("of a new namespace", "a", true)
				there("in a namespace that nobody saw go", "never", true)
				cancel()
				<-ended
			})
		})
	}
}

// TestOrphansOfNewKinds: the remains of a namespace are deleted even if no request has used the definition of their
// kind since it was written, as when another server stored the objects.
func TestOrphansOfNewKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		all := c.Catalogue.Known()
		others := slices.DeleteFunc(slices.Clone(all), func(r *kinds.Resource) bool { return r.Plural == "configmaps" })
		behind := kinds.NewCatalogue(others)
		n := &namespaces.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: time.Hour}, Catalogue: behind, Follow: func() { behind.Set(all) }}
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		c.Set("namespaces", "", "a", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
		c.Set("configmaps", "a", "x", corev1.ConfigMap{})
		synctest.Wait()
		behind.Set(others)
		end(c, "a", "1")
		synctest.Wait()
		if c.Cache.Get("configmaps", "a", "x") != nil {
			t.Error("the object is there still")
		}
		cancel()
		<-ended
	})
}

// end has a namespace terminate, and go at once.
func end(c *controllertest.Cluster, name string, uid types.UID) {
	now := metav1.Now()
	c.Set("namespaces", "", name, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: uid, DeletionTimestamp: &now}})
	c.Set("namespaces", "", name, nil)
}

// A namespace that goes without having been terminating was taken away by an operator, and
// nothing in it goes with it: not while it is missing, and not when it is made again.
func TestNothingIsLeftOfANamespaceThatDidNotTerminate(t *testing.T) {
	now := metav1.Now()
	active := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	terminating := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "1", DeletionTimestamp: &now}}
	for name, states := range map[string][]any{
		"active":                     {active},
		"never readable":             {controllertest.Unreadable(`{"metadata":7}`)},
		"active, then unreadable":    {active, controllertest.Unreadable(`{"metadata":{"name":"a","uid":"1"},"spec":7}`)},
		"unreadable and terminating": {terminating, controllertest.Unreadable(`{"metadata":{"name":"a","uid":"1","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":7}`)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := controllertest.NewCluster(t)
				ctx, cancel := context.WithCancel(t.Context())
				n := &namespaces.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: time.Hour}, Catalogue: c.Catalogue}
				ended := make(chan error, 1)
				go func() { ended <- n.Run(ctx) }()
				c.Set("configmaps", "a", "x", corev1.ConfigMap{})
				for _, state := range states {
					c.Set("namespaces", "", "a", state)
					synctest.Wait()
				}
				c.Set("namespaces", "", "a", nil)
				time.Sleep(time.Hour)
				c.Set("namespaces", "", "a", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "2"}})
				time.Sleep(time.Hour)
				synctest.Wait()
				if writes := c.Written(); len(writes) > 0 {
					t.Errorf("it is worked on: %v", writes)
				}
				if c.Cache.Get("configmaps", "a", "x") == nil {
					t.Error("the object went")
				}
				cancel()
				<-ended
			})
		})
	}
}

// A namespace is left alone until what clients made in it has settled, and not because it
// holds something, nor because the server has started since.
func TestNamespacesSettle(t *testing.T) {
	const rest = 5 * time.Second
	for name, tt := range map[string]struct {
		age    time.Duration // of the youngest object; negative: there is none
		status corev1.NamespaceStatus
		older  bool          // than the start of the server
		want   time.Duration // after that it is worked on, and not before
	}{
		"empty":              {age: -1, want: 100 * time.Millisecond},
		"of an hour ago":     {age: time.Hour, want: 100 * time.Millisecond},
		"of four seconds":    {age: 4 * time.Second, want: 2 * time.Second},
		"of now":             {age: 0, want: rest},
		"of the future":      {age: -time.Hour, want: rest},
		"emptied by another": {age: time.Hour, status: corev1.NamespaceStatus{Conditions: make([]corev1.NamespaceCondition, 1)}, want: rest},
		"before the start":   {age: 0, status: corev1.NamespaceStatus{Conditions: make([]corev1.NamespaceCondition, 1)}, older: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := controllertest.NewCluster(t)
				c.Fail = 1000 // the test only counts the calls, which all fail
				made := func(storage, name string, age time.Duration) {
					at := metav1.NewTime(time.Now().Add(-age))
					c.Set(storage, "a", name, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at}})
				}
				made("serviceaccounts", "default", 0)
				made("configmaps", "kube-root-ca.crt", 0)
				if tt.age != -1 {
					made("configmaps", "x", tt.age)
					made("secrets", "older", tt.age+time.Hour)
				}
				now := metav1.Now()
				c.Set("namespaces", "", "a", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "1", DeletionTimestamp: &now}, Status: tt.status})
				ctx, cancel := context.WithCancel(t.Context())
				n := &namespaces.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: rest}, Catalogue: c.Catalogue}
				if tt.older {
					n.Start = c.Cache.Get("namespaces", "", "a").Revision
				}
				ended := make(chan error, 1)
				go func() { ended <- n.Run(ctx) }()
				if tt.want > 0 {
					time.Sleep(tt.want - time.Millisecond)
					synctest.Wait()
					if early := c.Written(); len(early) > 0 {
						t.Errorf("too early: %v", early)
					}
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if len(c.Written()) == 0 {
					t.Error("nobody works on it")
				}
				cancel()
				<-ended
			})
		})
	}
}

// impostor is a cluster in which an object is another one of that name by the time that it is
// deleted.
type impostor struct {
	*controllertest.Cluster
	came bool
}

func (i *impostor) Call(ctx context.Context, agent, method, path, contentType string, body, into any) error {
	if method != http.MethodDelete {
		return i.Cluster.Call(ctx, agent, method, path, contentType, body, into)
	}
	if !i.came {
		i.came = true
		i.Set("configmaps", "a", "x", nil)
		i.Set("namespaces", "", "a", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "2"}})
		i.Set("configmaps", "a", "x", corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "new", Finalizers: []string{"example.com/hold"}}})
	}
	options, ok := body.(*metav1.DeleteOptions)
	if !ok || options.Preconditions == nil || options.Preconditions.UID == nil {
		return i.Cluster.Call(ctx, agent, method, path, contentType, body, into)
	}
	var there corev1.ConfigMap
	if i.Get("configmaps", "a", "x", &there) && there.UID != *options.Preconditions.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("another UID"))
	}
	return i.Cluster.Call(ctx, agent, method, path, contentType, body, into)
}

// Orphans of a namespace are deleted by their UID, not by their name.
func TestOrphansByTheirUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &impostor{Cluster: controllertest.NewCluster(t)}
		ctx, cancel := context.WithCancel(t.Context())
		n := &namespaces.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: time.Hour}, Catalogue: c.Catalogue}
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		c.Set("namespaces", "", "a", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
		c.Set("configmaps", "a", "x", corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "old"}})
		synctest.Wait()
		end(c.Cluster, "a", "1")
		time.Sleep(time.Hour)
		synctest.Wait()
		var there corev1.ConfigMap
		if !c.came || !c.Get("configmaps", "a", "x", &there) || there.UID != "new" || len(there.Finalizers) != 1 {
			t.Errorf("the object of the new namespace is %+v", there)
		}
		cancel()
		<-ended
	})
}
