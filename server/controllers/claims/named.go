package claims

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	// ClassesStorage is the storage of VolumeAttributesClasses, and ClassesSwitch the name of their controller.
	ClassesStorage = "volumeattributesclasses.storage.k8s.io"
	ClassesSwitch  = "volumeattributesclass-protection-controller"
	// GroupsStorage is the storage of PodGroups, and GroupsSwitch the name of their controller.
	GroupsStorage = "podgroups.scheduling.k8s.io"
	GroupsSwitch  = "podgroup-protection-controller"
)

// user is a kind of objects that use others by their names.
type user struct {
	storage string
	names   [][]string                  // paths of the names
	counts  func(item *cache.Item) bool // whether an object uses others at all; nil: all do
}

// Classes protects VolumeAttributesClasses that claims or volumes use. served is the group and version that the server
// serves them at.
func Classes(b reconcile.Base, served string) *InUse {
	u := &InUse{
		Base: b, storage: ClassesStorage, finalizer: "kubernetes.io/vac-protection", agent: reconcile.ManagerAgent + ClassesSwitch, add: true,
		root: "/apis/" + served, plural: "volumeattributesclasses", clusterWide: true,
	}
	u.named(
		user{storage: "persistentvolumes", names: [][]string{{"spec", "volumeAttributesClassName"}}},
		user{storage: Storage, names: [][]string{
			{"spec", "volumeAttributesClassName"},
			{"status", "currentVolumeAttributesClassName"},
			{"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"},
		}},
	)
	return u
}

// Groups protects PodGroups that Pods which have not ended belong to.
func Groups(b reconcile.Base, served string) *InUse {
	u := &InUse{
		Base: b, storage: GroupsStorage, finalizer: "scheduling.k8s.io/podgroup-protection", agent: reconcile.ManagerAgent + GroupsSwitch,
		root: "/apis/" + served, plural: "podgroups",
	}
	u.named(user{storage: "pods", names: [][]string{{"spec", "schedulingGroup", "podGroupName"}}, counts: func(item *cache.Item) bool {
		phase := corev1.PodPhase(reconcile.Text(item, "status", "phase"))
		return phase != corev1.PodSucceeded && phase != corev1.PodFailed
	}})
	return u
}

// named sets the users of objects, which name them.
func (u *InUse) named(users ...user) {
	for _, by := range users {
		u.users = append(u.users, by.storage)
	}
	u.use = func(ctx context.Context, namespace string) func(*cache.Item) bool {
		used := map[string]bool{}
		for _, by := range users {
			u.Cache.Snapshot(by.storage).Ascend(namespace, "", "", func(item *cache.Item) bool {
				for _, path := range by.names {
					if name := reconcile.Text(item, path...); name != "" && (by.counts == nil || by.counts(item)) {
						used[name] = true
					}
				}
				return ctx.Err() == nil
			})
		}
		return func(item *cache.Item) bool { return used[item.Name] }
	}
}
