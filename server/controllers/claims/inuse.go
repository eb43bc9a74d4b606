package claims

import (
	"context"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// restShare is the pause of a namespace between two scans, as a multiple of the duration of the scan.
const restShare = 5

// InUse keeps objects of a kind that are being deleted for as long as others use them, by a finalizer.
//
// Clients that may delete such objects, and change those that use them, cause a scan of all of both in that namespace,
// or in all for a kind without namespaces; scans of one namespace take at most a sixth of the time. Each object costs a
// write.
type InUse struct {
	reconcile.Base
	storage, finalizer, agent string
	root, plural              string // of the paths of the objects
	clusterWide               bool   // the objects have no namespace
	add                       bool   // give the finalizer to objects that lack it
	users                     []string
	// frees reports whether a change of a user may end a use; nil: each may.
	frees func(d cache.Delivery) bool
	// use scans the users in a namespace, "" for all, and returns which objects they use.
	use func(ctx context.Context, namespace string) (uses func(item *cache.Item) bool)

	loop *reconcile.Loop
	held map[string]bool // namespaces with objects that are terminating and in use
}

// Run works until ctx ends.
func (u *InUse) Run(ctx context.Context) error {
	u.held = map[string]bool{}
	l := &reconcile.Loop{Base: u.Base, Reconcile: u.reconcile, Failure: "cannot protect, or release, one of the " + u.plural}
	u.loop = l
	l.Sources = []reconcile.Source{{
		Storage: u.storage,
		Seen: func(item *cache.Item) {
			if u.needsUpdate(item) {
				l.Queue.Add(reconcile.Key{Namespace: item.Namespace}, 0)
			}
		},
		Gone: func(item *cache.Item) { l.Queue.Forget(reconcile.KeyOf(item)) },
	}}
	for _, storage := range u.users {
		l.Sources = append(l.Sources, reconcile.Source{Storage: storage, Changed: func(d cache.Delivery) {
			namespace := d.Item().Namespace
			if u.clusterWide {
				namespace = ""
			}
			if u.held[namespace] && (u.frees == nil || u.frees(d)) {
				l.Queue.Add(reconcile.Key{Namespace: namespace}, 0)
			}
		}})
	}
	return l.Run(ctx)
}

func (u *InUse) needsUpdate(item *cache.Item) bool {
	return needsUpdate(item, u.finalizer) && (u.add || item.Meta().Deleting)
}

// reconcile protects or releases the objects of a namespace. An object that failed has a key of its own, so that the
// others of its namespace do not wait for its retry.
func (u *InUse) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	began := time.Now()
	var todo []*cache.Item
	var used func(*cache.Item) bool
	going := int64(0) // the newest revision of an object that is being deleted
	u.Cache.Snapshot(u.storage).Ascend(key.Namespace, "", "", func(item *cache.Item) bool {
		if u.needsUpdate(item) && (key.Name == "" || key.Name == item.Name) {
			if todo = append(todo, item); item.Meta().Deleting {
				going = max(going, item.Revision)
			}
		}
		return ctx.Err() == nil
	})
	if going > 0 {
		if u.Cache.WaitFor(ctx, going) != nil { // the cache may show objects before users of the same commit
			return r, nil
		}
		used = u.use(ctx, key.Namespace)
	}
	if looked := time.Since(began); looked > time.Millisecond && key.Name == "" {
		r.Pause = restShare * looked
	}
	if key.Name == "" {
		delete(u.held, key.Namespace)
	}
	for _, item := range todo {
		one := reconcile.KeyOf(item)
		_, waits := u.loop.Queue.Backoff(one)
		switch {
		case ctx.Err() != nil:
			return r, nil
		case item.Meta().Deleting && used(item):
			u.held[item.Namespace] = true
			continue
		case waits:
			continue
		}
		err := setFinalizer(ctx, &u.Base, u.agent, u.collection(item.Namespace), item, u.finalizer)
		switch {
		case err == nil:
		case one == key:
			return r, err
		default:
			u.loop.Failed(ctx, one, err)
			u.loop.Queue.AddRateLimited(one)
		}
	}
	return r, nil
}

// collection returns the path of the objects in a namespace.
func (u *InUse) collection(namespace string) string {
	path := u.root + "/"
	if !u.clusterWide {
		path += "namespaces/" + namespace + "/"
	}
	return path + u.plural + "/"
}
