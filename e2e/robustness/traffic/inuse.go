//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// How long a deleted object stays in use: longer than its controller waits before it acts.
const (
	keptInUse     = 6 * time.Second
	keptNamespace = 9 * time.Second
)

// inUse is an object that a deletion must not remove while another object uses it.
type inUse struct {
	what    string
	objects [][2]string // the used one, and then its users
	path    string      // of the used one
	users   []string    // the paths of its users
	free    func() bool // ends the use
}

// keeps deletes an object that is in use, checks that it stays, ends the use, and waits until the object is gone.
func (c *client) keeps(ctx context.Context, u *inUse) bool {
	defer c.tidy(ctx, append(u.users, u.path)...)
	silent := c.silent
	if !c.made(ctx, c, u.objects...) || !c.unmade(ctx, c, u.path) {
		return false
	}
	c.during(ctx, keptInUse, func(int) { c.inspect(ctx, "lifecycle", u.what+", which is in use", u.path, going) })
	// The server may execute an unanswered request later, and so create the object or its user again.
	return u.free() && (c.silent != silent || c.vanishes(ctx, u.path))
}

// classesInUse deletes VolumeAttributesClasses that claims use.
func (c *client) classesInUse(ctx context.Context) {
	const classes, claims = "/apis/storage.k8s.io/v1/volumeattributesclasses", narrow + "/persistentvolumeclaims"
	for turn := 0; ctx.Err() == nil; turn++ {
		name := fmt.Sprintf("class-r%d-%d", c.round, turn)
		if !c.keeps(ctx, &inUse{what: "the class " + name, path: classes + "/" + name, users: []string{claims + "/" + name},
			objects: [][2]string{
				{classes, fmt.Sprintf(`{"metadata":{"name":%q},"driverName":"robust.rowlock.dev","parameters":{"a":"b"}}`, name)},
				{claims, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"storageClassName":"","volumeAttributesClassName":%[1]q,"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, name)},
			},
			free: func() bool { return c.unmade(ctx, c, claims+"/"+name) },
		}) {
			return
		}
	}
}

// claimsInUse deletes PersistentVolumeClaims of Pods that are on a node.
func (c *client) claimsInUse(ctx context.Context) {
	const claims, pods, node = narrow + "/persistentvolumeclaims", narrow + "/pods", "claims-in-use"
	if !c.made(ctx, c, [2]string{"/api/v1/nodes", `{"metadata":{"name":"` + node + `"}}`}) {
		return
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		name := fmt.Sprintf("claim-r%d-%d", c.round, turn)
		pod := pods + "/" + name + "?gracePeriodSeconds=0"
		if !c.keeps(ctx, &inUse{what: "the claim " + name, path: claims + "/" + name, users: []string{pod},
			objects: [][2]string{
				{claims, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"storageClassName":"","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, name)},
				{pods, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"nodeName":%q,"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":%[1]q}}]}}`, name, node)},
			},
			free: func() bool { return c.unmade(ctx, c, pod) },
		}) {
			return
		}
	}
}

// groupsInUse deletes PodGroups of running Pods.
func (c *client) groupsInUse(ctx context.Context) {
	const groups, pods = "/apis/scheduling.k8s.io/v1alpha2/namespaces/" + narrowNamespace + "/podgroups", narrow + "/pods"
	for turn := 0; ctx.Err() == nil; turn++ {
		name := fmt.Sprintf("group-r%d-%d", c.round, turn)
		if !c.keeps(ctx, &inUse{what: "the PodGroup " + name, path: groups + "/" + name, users: []string{pods + "/" + name + "?gracePeriodSeconds=0"},
			objects: [][2]string{
				{groups, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"schedulingPolicy":{"basic":{}}}}`, name)},
				{pods, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"schedulingGroup":{"podGroupName":%[1]q},"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`, name)},
			},
			free: func() bool {
				return c.mustPatch(ctx, pods+"/"+name+"/status", `{"status":{"phase":"Succeeded"}}`, http.StatusOK, http.StatusNotFound)
			},
		}) {
			return
		}
	}
}

// ordered deletes namespaces with a Pod that has a finalizer. Until the Pod is gone, everything else must stay.
func (c *client) ordered(ctx context.Context) {
	for turn := 0; ctx.Err() == nil && c.podsFirst(ctx, fmt.Sprintf("ordered-r%d-%d", c.round, turn)); turn++ {
	}
}

func (c *client) podsFirst(ctx context.Context, ns string) bool {
	const namespaces = "/api/v1/namespaces"
	home := namespaces + "/" + ns
	silent, pod, other := c.silent, home+"/pods/first", home+"/configmaps/second"
	free := func(ctx context.Context) bool {
		return c.mustPatch(ctx, pod, `{"metadata":{"finalizers":null}}`, http.StatusOK, http.StatusNotFound)
	}
	if !c.made(ctx, c, [2]string{namespaces, fmt.Sprintf(`{"metadata":{"name":%q}}`, ns)}, [2]string{home + "/configmaps", `{"metadata":{"name":"second"}}`},
		[2]string{home + "/pods", `{"metadata":{"name":"first","finalizers":["` + holding + `"]},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`}) {
		return false
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		free(end)
	}()
	vacate := history.Op{Kind: history.Vacate, Key: history.Key{Resource: "namespaces", Name: ns}}
	if _, ok := c.until(ctx, vacate, http.MethodDelete, home, "", noBody, history.OK, history.NotFound, history.Conflict); !ok {
		return false
	}
	c.during(ctx, keptNamespace, func(int) {
		c.inspect(ctx, "namespaces", "an object of the namespace "+ns+", in which there is a Pod", other, there)
	})
	return free(ctx) && (c.silent != silent || c.vanishes(ctx, home))
}
