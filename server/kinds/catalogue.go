package kinds

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/release"
)

// Catalogue finds resources. Look-ups are lock-free; Set swaps the whole table when custom resources are
// added or removed.
//
// A custom resource never replaces a built-in one. One whose objects would be stored in the place of built-in
// objects, or be taken for them, is left out: otherwise users that may write custom objects could write roles
// without the checks. In a version with served built-in resources, custom ones are off, as on a stock server.
type Catalogue struct {
	release release.Version
	mu      sync.Mutex
	table   atomic.Pointer[table]
}

type table struct {
	generation uint64

	known    []*Resource // in discovery order
	all      []*Resource // the served ones
	byGVR    map[schema.GroupVersionResource]*Resource
	byGVK    map[schema.GroupVersionKind]*Resource
	versions map[string][]string // group -> versions, preferred first
	storages map[string]*Resource
	builtin  map[string]bool               // groups with a built-in resource that is served
	own      map[schema.GroupResource]bool // built-in resources
}

// NewCatalogue makes a catalogue of resources, of the release of the first. Built-in resources are in
// discovery order, and the first version of a group is its preferred one;
// custom resources may be in any order.
func NewCatalogue(resources []*Resource) *Catalogue {
	c := &Catalogue{}
	if len(resources) > 0 {
		c.release = resources[0].Release
	}
	c.Set(resources)
	return c
}

// Set replaces the table.
func (c *Catalogue) Set(resources []*Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resources = inDiscoveryOrder(resources) // built-in ones come first
	t := &table{
		generation: 1,

		known:    make([]*Resource, 0, len(resources)),
		byGVR:    make(map[schema.GroupVersionResource]*Resource, len(resources)),
		byGVK:    make(map[schema.GroupVersionKind]*Resource, len(resources)),
		versions: make(map[string][]string),
		storages: make(map[string]*Resource),
		builtin:  make(map[string]bool),
		own:      make(map[schema.GroupResource]bool),
	}
	if last := c.table.Load(); last != nil {
		t.generation = last.generation + 1
	}
	seen, taken := make(map[schema.GroupVersion]bool), make(map[schema.GroupVersion]bool) // taken: by built-in resources
	for _, r := range resources {
		if r.Reserved { // they are last, and no other resource comes after them
			taken[r.GVR().GroupVersion()], t.own[r.GroupResource()] = !r.Off, true
		}
	}
	for _, r := range resources {
		if r.defined() && t.shadowed(r) {
			continue
		}
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		switch {
		case !r.defined():
			taken[gv] = taken[gv] || !r.Off
		case taken[gv] && !r.Off:
			off := *r
			off.Off = true
			r = &off
		}
		if !r.defined() {
			t.own[r.GroupResource()] = true
		}
		t.known = append(t.known, r)
		t.byGVR[r.GVR()] = r
		t.byGVK[r.GVK()] = r
		if !r.defined() && !r.Off {
			t.builtin[r.Group] = true
		}
		if !r.Off {
			t.all = append(t.all, r)
		}
		if !r.Off && !seen[gv] {
			seen[gv] = true
			t.versions[r.Group] = append(t.versions[r.Group], r.Version)
		}
		if r.Storage != nil && (t.storages[r.Storage.Key] == nil || r.GVK() == r.Storage.GVK) {
			t.storages[r.Storage.Key] = r
		}
	}
	c.table.Store(t)
}

// shadowed reports whether a custom resource would be taken for a built-in one.
func (t *table) shadowed(r *Resource) bool {
	if t.own[r.GroupResource()] {
		return true
	}
	if other := t.byGVK[r.GVK()]; other != nil && !other.defined() {
		return true
	}
	if r.Storage == nil {
		return false
	}
	home := t.storages[r.Storage.Key]
	return home != nil && !home.defined()
}

// Release returns the release of the built-in resources; of a nil catalogue, the default one.
func (c *Catalogue) Release() release.Version {
	if c == nil {
		return release.Default
	}
	return c.release
}

// Own reports whether a resource is built in, in any version, served or not.
func (c *Catalogue) Own(group, plural string) bool {
	return c.table.Load().own[schema.GroupResource{Group: group, Resource: plural}]
}

// Lookup finds a resource by group, version and plural name, or nil. It may be off.
func (c *Catalogue) Lookup(group, version, plural string) *Resource {
	return c.table.Load().byGVR[schema.GroupVersionResource{Group: group, Version: version, Resource: plural}]
}

// LookupKind finds a resource by kind, or nil. It may be off.
func (c *Catalogue) LookupKind(gvk schema.GroupVersionKind) *Resource {
	return c.table.Load().byGVK[gvk]
}

// ByStorage finds the resource that serves a storage key in its stored version, or nil.
func (c *Catalogue) ByStorage(key string) *Resource { return c.table.Load().storages[key] }

// Known lists every resource, those that are off too, in discovery order. The slice
// must not be changed.
func (c *Catalogue) Known() []*Resource { return c.table.Load().known }

// All lists every resource that is served, in discovery order. The slice must not be
// changed.
func (c *Catalogue) All() []*Resource { return c.table.Load().all }

// Versions lists a group's served versions, preferred first; nil for a group that has none.
func (c *Catalogue) Versions(group string) []string { return c.table.Load().versions[group] }

// BuiltIn reports whether a group has built-in resources that are served.
func (c *Catalogue) BuiltIn(group string) bool { return c.table.Load().builtin[group] }

// Snapshot is All with a number that rises whenever the catalogue changes, for derived values.
func (c *Catalogue) Snapshot() (resources []*Resource, generation uint64) {
	t := c.table.Load()
	return t.all, t.generation
}
