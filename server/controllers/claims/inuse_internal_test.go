package claims

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// TestInUse: a deleted object is removed once it is unused, and classes of attributes have the finalizer.
func TestInUse(t *testing.T) {
	const going = `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["kubernetes.io/vac-protection"]}}`
	const goingGroup = `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["scheduling.k8s.io/podgroup-protection"]}}`
	const member = `{"spec":{"schedulingGroup":{"podGroupName":"x"}},"status":{"phase":"Running"}}`
	for name, c := range map[string]struct {
		storage, text        string
		user, namespace, use string // that uses it; "": unused
		gone                 bool
		finalizer            string // which it has in the end
	}{
		"class":                      {storage: ClassesStorage, text: going, gone: true},
		"class of a volume":          {storage: ClassesStorage, text: going, user: "persistentvolumes", use: `{"spec":{"volumeAttributesClassName":"x"}}`},
		"class of a claim":           {storage: ClassesStorage, text: going, user: Storage, namespace: "a", use: `{"spec":{"volumeAttributesClassName":"x"}}`},
		"class that a claim has":     {storage: ClassesStorage, text: going, user: Storage, namespace: "a", use: `{"spec":{"volumeAttributesClassName":"y"},"status":{"currentVolumeAttributesClassName":"x"}}`},
		"class that a claim gets":    {storage: ClassesStorage, text: going, user: Storage, namespace: "a", use: `{"status":{"modifyVolumeStatus":{"targetVolumeAttributesClassName":"x"}}}`},
		"another class":              {storage: ClassesStorage, text: going, user: Storage, namespace: "a", use: `{"spec":{"volumeAttributesClassName":"y"}}`, gone: true},
		"class without":              {storage: ClassesStorage, text: `{"metadata":{}}`, finalizer: "kubernetes.io/vac-protection"},
		"group":                      {storage: GroupsStorage, text: goingGroup, gone: true},
		"group of a pod":             {storage: GroupsStorage, text: goingGroup, user: "pods", namespace: "a", use: member},
		"group of a pod that ended":  {storage: GroupsStorage, text: goingGroup, user: "pods", namespace: "a", use: `{"spec":{"schedulingGroup":{"podGroupName":"x"}},"status":{"phase":"Failed"}}`, gone: true},
		"group of another namespace": {storage: GroupsStorage, text: goingGroup, user: "pods", namespace: "b", use: member, gone: true},
		"group without":              {storage: GroupsStorage, text: `{"metadata":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := ""
			if c.storage == GroupsStorage {
				namespace = "a"
			}
			controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
				if c.user != "" {
					w.Set(c.user, c.namespace, "u", c.use)
				}
				w.Set(c.storage, namespace, "x", c.text)
				controllertest.Advance(time.Minute)
				item := w.Cache.Get(c.storage, namespace, "x")
				if (item == nil) != c.gone {
					t.Fatalf("it is gone: %v", item == nil)
				}
				if c.gone {
					return
				}
				if !item.Meta().Deleting {
					if f := reconcile.Finalizers(item); len(f) != 0 != (c.finalizer != "") || len(f) == 1 && f[0] != c.finalizer {
						t.Errorf("its finalizers: %v, want %q", f, c.finalizer)
					}
					return
				}
				w.Set(c.user, c.namespace, "u", "")
				controllertest.Advance(time.Minute)
				if w.Cache.Get(c.storage, namespace, "x") != nil {
					t.Error("nobody uses it, and it stays")
				}
			}, func(w *controllertest.FakeAPI) func(context.Context) error {
				b := reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}
				if c.storage == GroupsStorage {
					return Groups(b, "scheduling.k8s.io/v1alpha2").Run
				}
				return Classes(b, "storage.k8s.io/v1beta1").Run
			})
		})
	}
}

// TestOneScan: one scan of the users serves all objects of a namespace that are being deleted, and all changes meanwhile.
func TestOneScan(t *testing.T) {
	const groups = 30
	scans := 0
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		for i := range groups {
			w.Set("pods", "a", fmt.Sprint("p", i), fmt.Sprintf(`{"spec":{"schedulingGroup":{"podGroupName":"g%d"}}}`, i))
			w.Set(GroupsStorage, "a", fmt.Sprint("g", i), `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["scheduling.k8s.io/podgroup-protection"]}}`)
		}
		controllertest.Advance(time.Minute)
		if scans != 1 {
			t.Errorf("%d scans", scans)
		}
		for i := range groups {
			w.Set("pods", "a", fmt.Sprint("p", i), "")
		}
		controllertest.Advance(time.Minute)
		if scans != 2 {
			t.Errorf("%d scans after all pods are gone", scans)
		}
		for i := range groups {
			if w.Cache.Get(GroupsStorage, "a", fmt.Sprint("g", i)) != nil {
				t.Errorf("group %d stays", i)
			}
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		u := Groups(reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog, Debounce: time.Second}, "scheduling.k8s.io/v1alpha2")
		use := u.use
		u.use = func(ctx context.Context, namespace string) func(*cache.Item) bool {
			scans++
			return use(ctx, namespace)
		}
		return u.Run
	})
}
