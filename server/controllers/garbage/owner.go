package garbage

import (
	"errors"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/kinds"
)

// owner is the resolved owner of a reference.
type owner uint8

const (
	solid    owner = iota // it is there
	dangling              // it is not
	waiting               // it exists, and waits for the deletion of the dependent
	leaving               // it exists until the dependent no longer refers to it
)

// cluster is the namespace of objects that are in none.
var cluster = unique.Make("")

var (
	// errUnknown: it is not known now whether an owner exists.
	errUnknown = errors.New("the kind of an owner is unknown")
	// errRemote: another server stores the owner.
	errRemote = errors.New("the owner is at another server")
	// errUnreachable: the object can have no such owner, and never will.
	errUnreachable = errors.New("an object of the cluster cannot have an owner in a namespace")
)

// resolveOwner looks up the owner of a reference in memory. It returns errRemote for a kind that this server
// does not store.
func (c *state) resolveOwner(item *cache.Item, r *cache.Owner) (owner, error) {
	id := graph.IDOf(r.UID)
	c.mu.Lock()
	n, known := c.graph.Find(id)
	wentFrom := "" // which storage
	if known && n.Absent && c.wasAt(&n.Place, item, r) {
		wentFrom = c.kinds.names[n.Place.Kind].storage
	}
	c.mu.Unlock()
	if in := n.Place.Namespace; known && n.State == graph.Orphaning && (in == cluster || in.Value() == item.Namespace) {
		return leaving, nil
	}
	resource := c.resourceOf(r)
	switch {
	case resource != nil: // the cache decides, not the graph
	case wentFrom != "" && !c.has(wentFrom, n.Place.Namespace.Value(), r.Name, id):
		return dangling, nil // with its kind
	default:
		return solid, errRemote
	}
	namespace := ""
	if resource.Namespaced {
		if namespace = item.Namespace; namespace == "" {
			return solid, errUnreachable
		}
	}
	there := c.Cache.Get(resource.Storage.Key, namespace, r.Name)
	switch {
	case there == nil:
		return dangling, nil
	case there.Err() != nil:
		return solid, errUnknown
	}
	info := there.OwnerInfo()
	if info.UID != r.UID {
		return dangling, nil
	}
	if known && !n.Located {
		c.locate(id, resource.Storage.Key, there)
	}
	switch {
	case info.Deleting && info.Foreground:
		return waiting, nil
	case !collectable(resource): // its deletion is not observed
		return solid, errUnknown
	}
	return solid, nil
}

// has reports whether the cache has an object, even if it is not served, or if it is unreadable and may be
// the one.
func (c *state) has(storage, namespace, name string, id graph.ID) bool {
	item := c.Cache.Get(storage, namespace, name)
	return item != nil && (item.Err() != nil || graph.IDOf(item.OwnerInfo().UID) == id)
}

// wasAt reports whether a place is that which a reference names. c.mu is held.
func (c *state) wasAt(p *graph.Place, item *cache.Item, r *cache.Owner) bool {
	name := c.kinds.names[p.Kind]
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	in := p.Namespace.Value()
	return err == nil && name != nil && slices.Contains(name.gvks, gv.WithKind(r.Kind)) && p.Name == r.Name && (in == "" || in == item.Namespace)
}

// resourceOf returns the resource that a reference names, if objects of it are in memory.
func (c *state) resourceOf(r *cache.Owner) *kinds.Resource {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil || c.Remote != nil && c.Remote.Serves(gv) {
		return nil // another server serves the resource, whatever is stored here
	}
	found := c.Catalogue.LookupKind(gv.WithKind(r.Kind))
	if found == nil || found.Off || found.Storage == nil {
		return nil
	}
	return found
}

// locate records the place of an owner in the graph.
func (c *state) locate(id graph.ID, storage string, item *cache.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind, ok := c.kinds.number[storage]; ok {
		c.graph.Locate(id, &graph.Place{Kind: kind, Namespace: unique.Make(item.Namespace), Name: item.Name})
	}
}
