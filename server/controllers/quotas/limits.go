package quotas

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
)

// limits records which resources quotas limit, and in which namespaces.
type limits struct {
	catalogue *kinds.Catalogue
	named     map[string][]string               // the storages of those, by namespace
	in        map[string]map[string]bool        // the namespaces, by storage
	unknown   map[string][]schema.GroupResource // by namespace: those that are not there

	generation uint64 // of the catalogue from which served was made
	served     map[schema.GroupResource]*kinds.Resource
}

// resource returns a namespaced resource that this server stores; nil if there is none.
func (l *limits) resource(r schema.GroupResource) *kinds.Resource {
	if all, generation := l.catalogue.Snapshot(); l.served == nil || generation != l.generation {
		l.generation, l.served = generation, make(map[schema.GroupResource]*kinds.Resource, len(all))
		for _, one := range all {
			if key := one.GroupResource(); one.Namespaced && one.Storage != nil && l.served[key] == nil {
				l.served[key] = one
			}
		}
	}
	return l.served[r]
}

// set records the resources that the quotas of a namespace limit. came are storages that no quota limited before, left
// those that no quota limits any more. It omits resources of other servers, which are not watched.
func (l *limits) set(namespace string, list []schema.GroupResource, elsewhere func(schema.GroupResource) bool) (came []string, left map[string]bool) {
	var now []string
	delete(l.unknown, namespace)
	for _, r := range list {
		one := l.resource(r)
		if one == nil {
			if !elsewhere(r) {
				l.unknown[namespace] = append(l.unknown[namespace], r)
			}
			continue
		}
		now = append(now, one.Storage.Key)
	}
	for _, storage := range l.named[namespace] {
		if slices.Contains(now, storage) {
			continue
		}
		if delete(l.in[storage], namespace); len(l.in[storage]) == 0 {
			delete(l.in, storage)
			if left == nil {
				left = map[string]bool{}
			}
			left[storage] = true
		}
	}
	for _, storage := range now {
		if l.in[storage] == nil {
			l.in[storage] = map[string]bool{}
			came = append(came, storage)
		}
		l.in[storage][namespace] = true
	}
	if l.named[namespace] = now; len(now) == 0 {
		delete(l.named, namespace)
	}
	return came, left
}

// lost forgets a storage, and returns the namespaces with a quota that limits its objects.
func (l *limits) lost(storage string) (namespaces []string) {
	for namespace := range l.in[storage] {
		namespaces = append(namespaces, namespace)
		l.named[namespace] = slices.DeleteFunc(l.named[namespace], func(s string) bool { return s == storage })
	}
	delete(l.in, storage)
	return namespaces
}
