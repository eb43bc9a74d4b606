package namespaces

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/accounts"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

// youngestOf limits the objects that lastCreated reads.
const youngestOf = 1000

// contents finds the objects in namespaces.
type contents struct {
	cache     *cache.Cache
	catalogue *kinds.Catalogue
	follow    func() // updates catalogue with all definitions in cache; nil: not needed
}

// inside lists one resource for each namespaced storage, including those of definitions that were just created: another
// server may have stored objects of them already.
func (c *contents) inside() []*kinds.Resource {
	if c.follow != nil {
		c.follow()
	}
	var out []*kinds.Resource
	seen := make(map[string]bool)
	for _, r := range c.catalogue.Known() {
		if r.Namespaced && r.Storage != nil && !seen[r.Storage.Key] && slices.Contains(r.Verbs, "delete") {
			seen[r.Storage.Key] = true
			out = append(out, c.catalogue.ByStorage(r.Storage.Key))
		}
	}
	return out
}

// count returns how many objects are in a namespace.
func (c *contents) count(namespace string) int { return c.countOf(c.inside(), namespace) }

// countOf returns how many objects of some resources are in a namespace.
func (c *contents) countOf(resources []*kinds.Resource, namespace string) (count int) {
	for _, r := range resources {
		count += c.cache.Snapshot(r.Storage.Key).Count(namespace, cache.Position{})
	}
	return count
}

// lastCreated returns when a client last created an object in a namespace; zero if none did. It is unknown for a
// namespace with more than youngestOf objects.
func (c *contents) lastCreated(namespace string) (at time.Time, known bool) {
	left := youngestOf
	for _, r := range c.inside() {
		c.cache.Snapshot(r.Storage.Key).Ascend(namespace, "", "", func(it *cache.Item) bool {
			if r.Storage.Key == "serviceaccounts" && it.Name == accounts.DefaultAccount || r.Storage.Key == "configmaps" && it.Name == accounts.RootCAMap {
				return true
			}
			left--
			if made, err := time.Parse(time.RFC3339, it.Meta().CreationTimestamp); err == nil && made.After(at) {
				at = made
			}
			return left >= 0
		})
		if left < 0 {
			return at, false
		}
	}
	return at, true
}

// objects returns the names of the objects of a resource, and of Pods the longest time that one
// of them has to end.
func (c *contents) objects(namespace string, r *kinds.Resource) (names []string, grace time.Duration) {
	c.cache.Snapshot(r.Storage.Key).Ascend(namespace, "", "", func(it *cache.Item) bool {
		names = append(names, it.Name)
		var pod corev1.Pod
		if r.Storage.Key != "pods" || !reconcile.Decode(it, &pod) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return true
		}
		if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = max(grace, time.Duration(*s)*time.Second)
		}
		return true
	})
	return names, grace
}

// collection returns where the API has the objects of a resource in a namespace.
func collection(r *kinds.Resource, namespace string) string {
	prefix := "/api/" + r.Version
	if r.Group != "" {
		prefix = "/apis/" + r.Group + "/" + r.Version
	}
	return prefix + "/namespaces/" + namespace + "/" + r.Plural
}
