package kinds

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalogue finds resources. Look-ups are lock-free; Set swaps the whole table,
// as custom resources come and go.
type Catalogue struct {
	mu    sync.Mutex
	table atomic.Pointer[table]
}

type table struct {
	generation uint64

	known    []*Resource // in discovery order
	all      []*Resource // those of them that are served
	byGVR    map[schema.GroupVersionResource]*Resource
	byGVK    map[schema.GroupVersionKind]*Resource
	versions map[string][]string // group -> versions, preferred first
	storages map[string]*Resource
	builtin  map[string]bool // groups with a built-in resource that is served
}

// NewCatalogue makes a catalogue of resources. Built-in resources stand in
// discovery order, and the first version met of a group is its preferred one;
// custom resources may come in any order.
func NewCatalogue(resources []*Resource) *Catalogue {
	c := &Catalogue{}
	c.Set(resources)
	return c
}

// Set replaces the table.
func (c *Catalogue) Set(resources []*Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resources = inDiscoveryOrder(resources)
	t := &table{
		generation: 1,

		known:    resources,
		byGVR:    make(map[schema.GroupVersionResource]*Resource, len(resources)),
		byGVK:    make(map[schema.GroupVersionKind]*Resource, len(resources)),
		versions: make(map[string][]string),
		storages: make(map[string]*Resource),
		builtin:  make(map[string]bool),
	}
	if last := c.table.Load(); last != nil {
		t.generation = last.generation + 1
	}
	seen := make(map[schema.GroupVersion]bool)
	for _, r := range resources {
		t.byGVR[r.GVR()] = r
		t.byGVK[r.GVK()] = r
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		if !r.Custom && !r.Off {
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

// BuiltIn says that a group has built-in resources that are served.
func (c *Catalogue) BuiltIn(group string) bool { return c.table.Load().builtin[group] }

// Snapshot is All with a number that rises whenever the catalogue changes, for
// those who keep something computed from it.
func (c *Catalogue) Snapshot() (resources []*Resource, generation uint64) {
	t := c.table.Load()
	return t.all, t.generation
}
