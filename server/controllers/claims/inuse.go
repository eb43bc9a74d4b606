package claims

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	// ClassesStorage is where VolumeAttributesClasses are, and ClassesSwitch the name of their controller.
	ClassesStorage = "volumeattributesclasses.storage.k8s.io"
	ClassesSwitch  = "volumeattributesclass-protection-controller"
	// GroupsStorage is where PodGroups are, and GroupsSwitch the name of their controller.
	GroupsStorage = "podgroups.scheduling.k8s.io"
	GroupsSwitch  = "podgroup-protection-controller"
)

// user is a kind of objects that use others. uses says whether one of them uses an object of a name.
type user struct {
	storage string
	uses    func(item *cache.Item, name string) bool
}

// InUse keeps an object that is being deleted for as long as others use it, by a finalizer.
//
// Clients that may delete objects of the kind cause a scan of the users in their namespace, and another one after a
// change of users while they wait; the scans for one object take at most a sixth of the time. Each object costs a write.
type InUse struct {
	reconcile.Base
	storage, finalizer, agent string
	served                    string // the group and version at which the server serves the kind
	plural                    string
	add                       bool // give the finalizer to objects that lack it
	users                     []user

	held map[reconcile.Key]bool // objects that are in use and terminating
}

// Classes protects VolumeAttributesClasses that claims or volumes use. served is the group and version that the server
// serves them at.
func Classes(b reconcile.Base, served string) *InUse {
	return &InUse{
		Base: b, storage: ClassesStorage, finalizer: "kubernetes.io/vac-protection", agent: reconcile.ManagerAgent + ClassesSwitch, add: true,
		served: served, plural: "volumeattributesclasses",
		users: []user{
			{"persistentvolumes", func(item *cache.Item, name string) bool {
				return reconcile.Text(item, "spec", "volumeAttributesClassName") == name
			}},
			{Storage, func(item *cache.Item, name string) bool {
				return reconcile.Text(item, "spec", "volumeAttributesClassName") == name ||
					reconcile.Text(item, "status", "currentVolumeAttributesClassName") == name ||
					reconcile.Text(item, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName") == name
			}},
		},
	}
}

// Groups protects PodGroups that Pods which have not ended belong to.
func Groups(b reconcile.Base, served string) *InUse {
	return &InUse{
		Base: b, storage: GroupsStorage, finalizer: "scheduling.k8s.io/podgroup-protection", agent: reconcile.ManagerAgent + GroupsSwitch,
		served: served, plural: "podgroups",
		users: []user{{"pods", func(item *cache.Item, name string) bool {
			phase := corev1.PodPhase(reconcile.Text(item, "status", "phase"))
			return phase != corev1.PodSucceeded && phase != corev1.PodFailed && reconcile.Text(item, "spec", "schedulingGroup", "podGroupName") == name
		}}},
	}
}

// Run works until ctx ends.
func (u *InUse) Run(ctx context.Context) error {
	u.held = map[reconcile.Key]bool{}
	l := &reconcile.Loop{Base: u.Base, Reconcile: u.reconcile, Failure: "cannot protect an object in use, or release it"}
	l.Sources = []reconcile.Source{{
		Storage: u.storage,
		Seen: func(item *cache.Item) {
			if u.misfit(item) {
				l.Queue.Touch(reconcile.KeyOf(item), 0)
			}
		},
		Gone: func(item *cache.Item) {
			delete(u.held, reconcile.KeyOf(item))
			l.Queue.Forget(reconcile.KeyOf(item))
		},
	}}
	for _, user := range u.users {
		l.Sources = append(l.Sources, reconcile.Source{Storage: user.storage, Changed: func(d cache.Delivery) {
			for key := range u.held {
				if key.Namespace == "" || key.Namespace == d.Item().Namespace {
					l.Queue.Touch(key, 0)
				}
			}
		}})
	}
	return l.Run(ctx)
}

func (u *InUse) misfit(item *cache.Item) bool {
	return misfit(item, u.finalizer) && (u.add || item.Meta().Deleting)
}

func (u *InUse) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	item := u.Cache.Get(u.storage, key.Namespace, key.Name)
	if item == nil || !u.misfit(item) {
		delete(u.held, key)
		return r, nil
	}
	if item.Meta().Deleting {
		if u.Cache.WaitFor(ctx, item.Revision) != nil { // the cache may show it before users of the same commit
			return r, nil
		}
		began := time.Now()
		used := slices.ContainsFunc(u.users, func(by user) bool { return u.uses(ctx, by, key) })
		if ctx.Err() != nil {
			return r, nil
		}
		if looked := time.Since(began); looked > time.Millisecond {
			r.Rest = restShare * looked
		}
		if used {
			u.held[key] = true
			return r, nil
		}
	}
	collection := "/apis/" + u.served + "/"
	if key.Namespace != "" {
		collection += "namespaces/" + key.Namespace + "/"
	}
	return r, setFinalizer(ctx, &u.Base, u.agent, collection+u.plural+"/", item, u.finalizer)
}

func (u *InUse) uses(ctx context.Context, by user, key reconcile.Key) (used bool) {
	u.Cache.Snapshot(by.storage).Ascend(key.Namespace, "", "", func(item *cache.Item) bool {
		used = by.uses(item, key.Name)
		return !used && ctx.Err() == nil
	})
	return used
}
