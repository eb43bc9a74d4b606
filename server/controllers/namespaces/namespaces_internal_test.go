package namespaces

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

func terminating(uid string) corev1.Namespace {
	now := metav1.Now()
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), DeletionTimestamp: &now}}
}

// TestHeavyNamespaceGoes: a namespace with many objects that goes just before a worker begins with it takes no place from
// others.
func TestHeavyNamespaceGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		for i := range heavyFrom {
			for _, namespace := range []string{"a", "b"} {
				c.Set("configmaps", namespace, fmt.Sprint(i), corev1.ConfigMap{})
			}
		}
		var calls atomic.Int32
		metrics := reconcile.NewMetrics(func() time.Time {
			if calls.Add(1) == 2 { // a worker has taken the first key, and reads the clock before it reconciles it
				c.Set("namespaces", "", "a", nil)
				time.Sleep(time.Millisecond)
			}
			return time.Now()
		})
		n := &Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Meter: metrics.Of("namespace")}, Catalogue: c.Catalogue, Workers: 1}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		c.Set("namespaces", "", "a", terminating("1"))
		synctest.Wait()
		if c.Cache.Get("namespaces", "", "a") != nil {
			t.Fatal("the first namespace is there still")
		}
		c.Set("namespaces", "", "b", terminating("2"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.ContainsFunc(c.Written(), func(call string) bool { return strings.HasSuffix(call, "/namespaces/b") }) {
			t.Error("nobody works on the second namespace")
		}
		cancel()
		<-ended
	})
}

// TestWaitingNamespacesAreCountedOnce: the queue asks of all that wait, under its lock, for each namespace that it gives.
func TestWaitingNamespacesAreCountedOnce(t *testing.T) {
	c := controllertest.NewCluster(t)
	counts := 0
	n := &Controller{Workers: 2, heavy: map[reconcile.Key]bool{}, large: map[reconcile.Key]bool{}}
	n.here = emptier{contents: contents{cache: c.Cache, catalogue: c.Catalogue, follow: func() { counts++ }}}
	for i := range heavyFrom {
		for _, namespace := range []string{"a", "b", "c"} {
			c.Set("configmaps", namespace, fmt.Sprint(i), corev1.ConfigMap{})
		}
	}
	admitted := func(want bool, namespaces ...string) {
		t.Helper()
		for _, name := range namespaces {
			if got := n.admit(reconcile.Key{Namespace: name}); got != want {
				t.Errorf("%s is admitted: %v", name, got)
			}
		}
	}
	admitted(true, "a")
	for range 10 {
		admitted(false, "b", "c")
	}
	admitted(true, "small")
	if counts != 4 {
		t.Errorf("objects were counted %d times", counts)
	}
	clear(n.heavy) // its end
	admitted(true, "c")
	admitted(false, "b")
	clear(n.heavy)
	admitted(true, "b")
	if len(n.large) > 0 {
		t.Errorf("kept of those that wait no longer: %v", n.large)
	}
}

// TestOrphansOfMany: the orphans of a namespace are deleted at once, however many namespaces were deleted just before.
func TestOrphansOfMany(t *testing.T) {
	c := controllertest.NewCluster(t)
	base := reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}
	n := &Controller{Base: base, going: map[reconcile.Key]*termination{}, gone: map[reconcile.Key]*orphaned{}}
	n.sweeper = sweeper{Base: base, contents: contents{cache: c.Cache, catalogue: c.Catalogue}}
	n.loop = &reconcile.Loop{Queue: &reconcile.Queue[reconcile.Key, string]{Clock: time.Now, Turn: func(k reconcile.Key) string { return k.Namespace }}}
	for i := range orphansMost {
		n.gone[reconcile.Key{Namespace: fmt.Sprint(i)}] = &orphaned{}
	}
	c.Set("configmaps", "a", "x", corev1.ConfigMap{})
	c.Set("namespaces", "", "a", terminating("1"))
	watcher, _ := c.Cache.WatchNow("namespaces", cache.Scope{})
	defer watcher.Stop()
	c.Set("namespaces", "", "a", nil)
	batch, _, err := watcher.Take(t.Context(), nil)
	if err != nil || len(batch) != 1 {
		t.Fatal(batch, err)
	}
	n.namespaceDeleted(batch[0])
	r, err := n.reconcile(t.Context(), reconcile.Key{Namespace: "a", Name: "1"})
	if err != nil || r.After != 0 || len(n.gone) != orphansMost {
		t.Errorf("another look after %v, %d namespaces are known, %v", r.After, len(n.gone), err)
	}
	if c.Cache.Get("configmaps", "a", "x") != nil {
		t.Error("what it left is there")
	}
}

// TestPollRests: while many namespaces wait for deletions, a check lists the resources once, and is followed by a pause that grows
// with its cost. It keeps nothing of removed definitions.
func TestPollRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		looks := 0
		n := &Controller{Base: reconcile.Base{Cache: c.Cache, Clock: time.Now}, going: map[reconcile.Key]*termination{}, removed: map[string]int64{"boats.example.com": 1}}
		n.here = emptier{contents: contents{cache: c.Cache, catalogue: c.Catalogue, follow: func() {
			looks++
			time.Sleep(time.Second)
		}}}
		n.loop = &reconcile.Loop{Queue: &reconcile.Queue[reconcile.Key, string]{Clock: time.Now, Turn: func(k reconcile.Key) string { return k.Namespace }}}
		for i := range 100 {
			n.going[reconcile.Key{Namespace: fmt.Sprint(i)}] = &termination{left: 2}
		}
		for round := range 3 {
			c.Set("configmaps", "0", "x", corev1.ConfigMap{})
			c.Set("configmaps", "0", "x", nil)
			for range 5 {
				if next := n.poll(); next <= 0 || next > removalRest*time.Second {
					t.Fatalf("the next check is after %v", next)
				}
			}
			if looks != round+1 {
				t.Errorf("%d checks looked %d times", round+1, looks)
			}
			time.Sleep(removalRest * time.Second)
		}
		if _, kept := n.removed["boats.example.com"]; kept {
			t.Error("the last deletion of a removed definition is known")
		}
	})
}
