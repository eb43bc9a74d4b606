// Package graph records which objects are owners of which, and reports the objects to process when one
// changes or is deleted.
//
// It holds only what finds the objects, and decides nothing: the caller reads the objects themselves to learn
// whether an owner exists. It omits objects that have no owners and no dependents. A dependent with one owner
// takes 48 bytes and a slot of the index, whatever its size; and a change takes time in proportion to the
// references of its object, and to its dependents if these are reported.
//
// A Graph is not safe for concurrent use.
package graph

import (
	"unique"
	"unsafe"
)

// State is the reason why an object that is being deleted waits.
type State uint8

const (
	// Foreground: until none of its dependents blocks its deletion.
	Foreground State = 1 << iota
	// Orphaning: until no object refers to it.
	Orphaning
)

// Place is the kind and the namespace of an object.
type Place struct {
	Kind      uint32 // a number of the caller's; less than 1<<24
	Namespace unique.Handle[string]
	Name      string
}

// Ref is a reference to an owner.
type Ref struct {
	Owner  ID
	Blocks bool // the owner's deletion in the foreground waits for the dependent
}

// Object is the record of an object in a Graph.
type Object struct {
	ID    ID
	Place Place
	Refs  []Ref // in any order; Set puts them in its own
	State State
}

// Node is the record of an object that is an owner, has one, or waits.
type Node struct {
	Place      Place // if Located
	State      State
	Located    bool // where it is, is known
	Absent     bool // it was seen going
	Dependents bool // there are some that it can own
	Blocking   int  // the other ones that block its deletion
}

// WorkItem is an object to process, and its namespace.
type WorkItem struct {
	ID        ID
	Namespace unique.Handle[string]
}

// The record of a node besides its State.
const (
	located uint8 = 1 << (iota + 2)
	absent
	urgent
	parked
	seen
)

// node is an object. Most have one owner and no dependents, so it has 48 bytes, and one of its edges.
type node struct {
	id        ID
	name      *byte
	namespace unique.Handle[string]
	length    uint32 // of the name
	place     uint32 // kind<<8 | flags
	edge      edge   // one of those to its owners, unless its owner is 0
	rest      uint32 // the entry for its other edges; 0 without any
}

// rest is the dependents of a node, and its other owners.
type rest struct {
	first    uint32 // link to an edge from a dependent
	owned    uint32 // how many edges there are from dependents that it can own
	blocking uint32
	owners   uint32 // number of its first further edge
}

func (n *node) has(flag uint8) bool { return uint8(n.place)&flag != 0 }
func (n *node) set(flag uint8)      { n.place |= uint32(flag) }
func (n *node) clear(flag uint8)    { n.place &^= uint32(flag) }
func (n *node) kind() uint32        { return n.place >> 8 }
func (n *node) state() State        { return State(n.place) & (Foreground | Orphaning) }

// used reports whether an object has references or waits; the graph has no others.
func (n *node) used() bool { return n.edge.owner != 0 || n.rest != 0 || n.state() != 0 }

func (n *node) locate(p *Place) {
	n.name, n.length = unsafe.StringData(p.Name), uint32(len(p.Name))
	n.namespace, n.place = p.Namespace, p.Kind<<8|n.place&0xff|uint32(located)
}

func (n *node) where() Place {
	return Place{Kind: n.kind(), Namespace: n.namespace, Name: unsafe.String(n.name, n.length)}
}

// Graph is the graph of all owners and dependents.
type Graph struct {
	nodes   arena[node]
	further arena[further]
	rest    arena[rest]
	edges   int
	byID    index
}

// New makes an empty graph.
func New() *Graph { return &Graph{} }

// Len returns how many objects and references there are.
func (g *Graph) Len() (nodes, edges int) { return g.nodes.len(), g.edges }

// Find returns the node of an object.
func (g *Graph) Find(id ID) (Node, bool) {
	i := g.find(id)
	if i == 0 {
		return Node{}, false
	}
	n := g.nodes.at(i)
	of := g.ownedBy(n)
	return Node{
		Place: n.where(), State: n.state(), Located: n.has(located), Absent: n.has(absent), Dependents: of.owned != 0, Blocking: int(of.blocking),
	}, true
}

// ownedBy returns the state of the dependents of a node.
func (g *Graph) ownedBy(n *node) rest {
	if n.rest == 0 {
		return rest{}
	}
	return *g.rest.at(n.rest)
}

// restOf returns the entry for the other edges of a node, and makes it if necessary.
func (g *Graph) restOf(n *node) *rest {
	if n.rest == 0 {
		n.rest = g.rest.take()
	}
	return g.rest.at(n.rest)
}

// release gives the entry for the other edges of a node back if there are none.
func (g *Graph) release(n *node) {
	if n.rest != 0 && *g.rest.at(n.rest) == (rest{}) {
		g.rest.give(n.rest)
		n.rest = 0
	}
}

// Set takes the present state of an object, and calls look with each object, including this one, that must be
// examined because of the change. It reports whether the object's references have changed.
func (g *Graph) Set(o *Object, look func(WorkItem)) (changed bool) {
	i := g.find(o.ID)
	if i == 0 {
		if len(o.Refs) == 0 && o.State == 0 {
			return false
		}
		i = g.add(o.ID)
	}
	g.locate(i, &o.Place, look)
	n := g.nodes.at(i)
	n.clear(absent)
	n.set(seen)
	changed = g.refer(i, o.Refs, look)
	began := o.State &^ n.state()
	n.clear(uint8(Foreground | Orphaning))
	n.set(uint8(o.State))
	if began != 0 {
		g.reportDependents(n, look)
		look(WorkItem{n.id, n.namespace})
	}
	g.drop(i)
	return changed
}

// Gone records the deletion of an object, and calls look like Set.
func (g *Graph) Gone(id ID, p *Place, look func(WorkItem)) {
	i := g.find(id)
	if i == 0 {
		return
	}
	n := g.nodes.at(i)
	n.clear(uint8(Foreground|Orphaning) | parked)
	g.locate(i, p, look)
	n.set(absent)
	g.refer(i, nil, look)
	g.reportDependents(n, look)
	g.drop(i)
}

// Locate takes where an owner is that others refer to, if that is not known.
func (g *Graph) Locate(id ID, p *Place) {
	if i := g.find(id); i != 0 && !g.nodes.at(i).has(located) {
		g.locate(i, p, func(WorkItem) {}) // the waiting object has a place now
		g.nodes.at(i).set(seen)
	}
}

// locate records the place of an object, which determines the dependents that it can own.
func (g *Graph) locate(i uint32, p *Place, look func(WorkItem)) {
	n := g.nodes.at(i)
	same := n.has(located) && n.namespace == p.Namespace
	n.locate(p)
	for l := g.ownedBy(n).first; l != 0 && !same; l = g.edge(l).after {
		if e := g.edge(l); g.owns(n, g.dependent(l)) != e.has(valid) {
			g.count(l, -1, look)
			e.owner ^= valid
			g.count(l, 1, look)
		}
	}
}

// cluster is the namespace of objects that are in none.
var cluster = unique.Make("")

// owns reports whether an owner can own a dependent with a known place: a cluster-scoped one owns any, one
// in a namespace those of that namespace. An unknown one may be anywhere.
func (g *Graph) owns(owner *node, dependent uint32) bool {
	return !owner.has(located) || owner.namespace == cluster || owner.namespace == g.nodes.at(dependent).namespace
}

// Dependents calls fn with the dependents of an object that it can own until fn returns false.
func (g *Graph) Dependents(id ID, fn func(id ID, state State) bool) {
	i := g.find(id)
	if i == 0 {
		return
	}
	for l := g.ownedBy(g.nodes.at(i)).first; l != 0; l = g.edge(l).after {
		if d := g.nodes.at(g.dependent(l)); g.edge(l).has(valid) && !fn(d.id, d.state()) {
			return
		}
	}
}

func (g *Graph) reportDependents(n *node, look func(WorkItem)) {
	for l := g.ownedBy(n).first; l != 0; l = g.edge(l).after {
		d := g.nodes.at(g.dependent(l))
		look(WorkItem{d.id, d.namespace})
	}
}

func (g *Graph) add(id ID) uint32 {
	i := g.nodes.take()
	g.nodes.at(i).id = id
	g.byID.add(i, &g.nodes)
	return i
}

// find returns the number of a node, or 0.
func (g *Graph) find(id ID) uint32 { return g.byID.find(id, &g.nodes) }

// drop removes a node without references.
func (g *Graph) drop(i uint32) {
	n := g.nodes.at(i)
	if n.used() {
		return
	}
	g.byID.remove(i, &g.nodes)
	g.nodes.give(i)
	if g.nodes.len() == 0 { // give back the memory of all
		*g = *New()
	}
}
