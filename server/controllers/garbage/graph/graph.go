// Package graph records which objects are owners of which, and reports the objects to process when one
// changes or is deleted.
//
// It holds only what finds the objects, and decides nothing: the caller reads the objects themselves to learn
// whether an owner exists. It omits objects that have no owners and no dependents. A dependent with one owner
// takes less than a hundred bytes, whatever its size; and a change takes time in proportion to the references
// of its object, and to its dependents if these are reported.
//
// A Graph is not safe for concurrent use.
package graph

import (
	"bytes"
	"slices"
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

// node is an object. Most have an owner and no dependents, so it has 48 bytes.
type node struct {
	id        ID
	name      *byte
	namespace unique.Handle[string]
	length    uint32 // of the name
	owners    uint32 // its first edge to an owner
	owning    uint32 // the entry for its dependents; 0 without dependents
	place     uint32 // kind<<8 | flags
}

// owning is the dependents of a node.
type owning struct {
	first    uint32 // edge from a dependent
	owned    uint32 // how many edges there are from dependents that it can own
	blocking uint32
}

func (n *node) has(flag uint8) bool { return uint8(n.place)&flag != 0 }
func (n *node) set(flag uint8)      { n.place |= uint32(flag) }
func (n *node) clear(flag uint8)    { n.place &^= uint32(flag) }
func (n *node) kind() uint32        { return n.place >> 8 }
func (n *node) state() State        { return State(n.place) & (Foreground | Orphaning) }

func (n *node) locate(p *Place) {
	n.name, n.length = unsafe.StringData(p.Name), uint32(len(p.Name))
	n.namespace, n.place = p.Namespace, p.Kind<<8|n.place&0xff|uint32(located)
}

func (n *node) where() Place {
	return Place{Kind: n.kind(), Namespace: n.namespace, Name: unsafe.String(n.name, n.length)}
}

// edge is a reference. Those of a dependent are a list in the order of their owners' IDs; those to an owner
// are an unordered list.
type edge struct {
	owner, dependent uint32
	more             uint32 // of the dependent
	before, after    uint32 // of the owner
	blocks           bool
	valid            bool // the owner can own the dependent, by their namespaces as far as they are known
}

// Graph is the graph of all owners and dependents.
type Graph struct {
	nodes  arena[node]
	edges  arena[edge]
	owning arena[owning]
	byID   index
}

// New makes an empty graph.
func New() *Graph { return &Graph{byID: newIndex()} }

// Len returns how many objects and references there are.
func (g *Graph) Len() (nodes, edges int) { return g.nodes.len(), g.edges.len() }

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
func (g *Graph) ownedBy(n *node) owning {
	if n.owning == 0 {
		return owning{}
	}
	return *g.owning.at(n.owning)
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
	for e := g.ownedBy(n).first; e != 0 && !same; e = g.edges.at(e).after {
		edge := g.edges.at(e)
		if valid := g.valid(n, edge.dependent); valid != edge.valid {
			g.count(edge, -1, look)
			edge.valid = valid
			g.count(edge, 1, look)
		}
	}
}

// cluster is the namespace of objects that are in none.
var cluster = unique.Make("")

// valid reports whether an owner can own a dependent with a known place: a cluster-scoped one owns any, one
// in a namespace those of that namespace. An unknown one may be anywhere.
func (g *Graph) valid(owner *node, dependent uint32) bool {
	return !owner.has(located) || owner.namespace == cluster || owner.namespace == g.nodes.at(dependent).namespace
}

// count counts an edge at its owner, or stops counting it, for which the owner may be waiting.
func (g *Graph) count(e *edge, by int, look func(WorkItem)) {
	if !e.valid {
		return
	}
	n := g.nodes.at(e.owner)
	of := g.owning.at(n.owning)
	of.owned += uint32(by)
	blocks := e.blocks && e.owner != e.dependent
	if blocks {
		of.blocking += uint32(by)
	}
	if by < 0 && (of.owned == 0 && n.state()&Orphaning != 0 || blocks && of.blocking == 0 && n.state()&Foreground != 0) {
		look(WorkItem{n.id, n.namespace})
	}
}

// Dependents calls fn with the dependents of an object that it can own until fn returns false.
func (g *Graph) Dependents(id ID, fn func(id ID, state State) bool) {
	i := g.find(id)
	if i == 0 {
		return
	}
	for e := g.ownedBy(g.nodes.at(i)).first; e != 0; e = g.edges.at(e).after {
		if d := g.nodes.at(g.edges.at(e).dependent); g.edges.at(e).valid && !fn(d.id, d.state()) {
			return
		}
	}
}

func (g *Graph) reportDependents(n *node, look func(WorkItem)) {
	for e := g.ownedBy(n).first; e != 0; e = g.edges.at(e).after {
		d := g.nodes.at(g.edges.at(e).dependent)
		look(WorkItem{d.id, d.namespace})
	}
}

// refer puts references in the place of those that a node has.
func (g *Graph) refer(i uint32, refs []Ref, look func(WorkItem)) (changed bool) {
	refs = inOrder(refs)
	at := &g.nodes.at(i).owners // the link to the present edge; nodes and edges stay where they are
	for *at != 0 || len(refs) > 0 {
		e := *at
		order := 1
		switch {
		case e == 0:
		case len(refs) == 0:
			order = -1
		default:
			owner := g.nodes.at(g.edges.at(e).owner)
			order = bytes.Compare(owner.id[:], refs[0].Owner[:])
		}
		switch {
		case order < 0: // nothing refers like that any more
			*at = g.edges.at(e).more
			g.disconnect(e, look)
			changed = true
			continue
		case order > 0:
			e = g.connect(i, refs[0])
			g.edges.at(e).more, *at = *at, e
			changed = true
		case g.edges.at(e).blocks != refs[0].Blocks:
			g.block(e, refs[0].Blocks, look)
			changed = true
		}
		at, refs = &g.edges.at(e).more, refs[1:]
	}
	return changed
}

// inOrder sorts references by their owners, each of which is named once then.
func inOrder(refs []Ref) []Ref {
	if len(refs) < 2 {
		return refs
	}
	slices.SortFunc(refs, func(a, b Ref) int { return bytes.Compare(a.Owner[:], b.Owner[:]) })
	kept := refs[:1]
	for _, r := range refs[1:] {
		if last := &kept[len(kept)-1]; last.Owner == r.Owner {
			last.Blocks = last.Blocks || r.Blocks
		} else {
			kept = append(kept, r)
		}
	}
	return kept
}

// connect makes the edge of a reference.
func (g *Graph) connect(dependent uint32, r Ref) uint32 {
	owner := g.find(r.Owner)
	if owner == 0 {
		owner = g.add(r.Owner)
	}
	i := g.edges.take()
	n := g.nodes.at(owner)
	if n.owning == 0 {
		n.owning = g.owning.take()
	}
	of := g.owning.at(n.owning)
	e := g.edges.at(i)
	*e = edge{owner: owner, dependent: dependent, after: of.first, blocks: r.Blocks, valid: g.valid(n, dependent)}
	if of.first != 0 {
		g.edges.at(of.first).before = i
	}
	of.first = i
	g.count(e, 1, nil)
	return i
}

// disconnect removes an edge from its owner, for which the owner may be waiting.
func (g *Graph) disconnect(i uint32, look func(WorkItem)) {
	e := g.edges.at(i)
	g.count(e, -1, look)
	n := g.nodes.at(e.owner)
	if e.before != 0 {
		g.edges.at(e.before).after = e.after
	} else {
		g.owning.at(n.owning).first = e.after
	}
	if e.after != 0 {
		g.edges.at(e.after).before = e.before
	}
	if g.owning.at(n.owning).first == 0 {
		g.owning.give(n.owning)
		n.owning = 0
	}
	owner, dependent := e.owner, e.dependent
	g.edges.give(i)
	if owner != dependent {
		g.drop(owner)
	}
}

// block changes whether a reference blocks.
func (g *Graph) block(i uint32, blocks bool, look func(WorkItem)) {
	e := g.edges.at(i)
	if e.blocks == blocks {
		return
	}
	g.count(e, -1, func(WorkItem) {})
	e.blocks = blocks
	g.count(e, 1, nil)
	if n := g.nodes.at(e.owner); e.valid && !blocks && e.owner != e.dependent && g.owning.at(n.owning).blocking == 0 && n.state()&Foreground != 0 {
		look(WorkItem{n.id, n.namespace})
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
	if n.owners != 0 || n.owning != 0 || n.state() != 0 {
		return
	}
	g.byID.remove(i, &g.nodes)
	g.nodes.give(i)
	if g.nodes.len() == 0 { // give back the memory of all
		*g = *New()
	}
}
