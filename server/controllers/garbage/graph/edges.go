package graph

import (
	"cmp"
	"slices"
)

// edge is a reference. Those to an owner are a list of links. The link to the edge in a node is twice the node's
// number, and that to a further edge is twice its number and one.
type edge struct {
	owner         uint32 // its number<<2 | flags
	before, after uint32
}

// further is an edge of a node that has several.
type further struct {
	edge
	dependent uint32
	more      uint32 // the next further edge of the dependent
}

// Flags of an edge.
const (
	blocks uint32 = 1 << iota
	valid         // the owner can own the dependent, by their namespaces as far as they are known
)

func (e *edge) to() uint32           { return e.owner >> 2 }
func (e *edge) has(flag uint32) bool { return e.owner&flag != 0 }

// edge returns the edge of a link, and dependent its dependent.
func (g *Graph) edge(link uint32) *edge {
	if link&1 != 0 {
		return &g.further.at(link >> 1).edge
	}
	return &g.nodes.at(link >> 1).edge
}

func (g *Graph) dependent(link uint32) uint32 {
	if link&1 != 0 {
		return g.further.at(link >> 1).dependent
	}
	return link >> 1
}

// count counts an edge at its owner, or stops counting it, for which the owner may be waiting.
func (g *Graph) count(link uint32, by int, look func(WorkItem)) {
	e := g.edge(link)
	if !e.has(valid) {
		return
	}
	n := g.nodes.at(e.to())
	of := g.rest.at(n.rest)
	of.owned += uint32(by)
	waits := e.has(blocks) && e.to() != g.dependent(link)
	if waits {
		of.blocking += uint32(by)
	}
	if by < 0 && (of.owned == 0 && n.state()&Orphaning != 0 || waits && of.blocking == 0 && n.state()&Foreground != 0) {
		look(WorkItem{n.id, n.namespace})
	}
}

// refer puts references in the place of those that a node has.
func (g *Graph) refer(i uint32, refs []Ref, look func(WorkItem)) (changed bool) {
	refs = inOrder(refs)
	var few [8]bool
	had := append(few[:0], make([]bool, len(refs))...) // those of refs that the node has
	stays := func(link uint32) bool {
		at, ok := slices.BinarySearchFunc(refs, g.nodes.at(g.edge(link).to()).id, func(r Ref, id ID) int { return cmp.Compare(r.Owner, id) })
		if ok {
			had[at] = true
			changed = g.block(link, refs[at].Blocks, look) || changed
		}
		return ok
	}
	n := g.nodes.at(i)
	if n.edge.owner != 0 && !stays(i<<1) {
		g.disconnect(i<<1, look)
		changed = true
	}
	if n.rest != 0 {
		for at := &g.rest.at(n.rest).owners; *at != 0; { // the link to the present edge; nodes and edges stay where they are
			e := *at
			if next := &g.further.at(e).more; stays(e<<1 | 1) {
				at = next
				continue
			}
			*at = g.further.at(e).more
			g.disconnect(e<<1|1, look)
			changed = true
		}
		g.release(n)
	}
	for at, r := range refs {
		if !had[at] {
			g.connect(i, r)
			changed = true
		}
	}
	return changed
}

// inOrder sorts references by their owners, each of which is named once then.
func inOrder(refs []Ref) []Ref {
	if len(refs) < 2 {
		return refs
	}
	slices.SortFunc(refs, func(a, b Ref) int { return cmp.Compare(a.Owner, b.Owner) })
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
func (g *Graph) connect(dependent uint32, r Ref) {
	owner := g.find(r.Owner)
	if owner == 0 {
		owner = g.add(r.Owner)
	}
	d, link := g.nodes.at(dependent), dependent<<1
	if d.edge.owner != 0 {
		i, of := g.further.take(), g.restOf(d)
		*g.further.at(i) = further{dependent: dependent, more: of.owners}
		of.owners, link = i, i<<1|1
	}
	of, e := g.restOf(g.nodes.at(owner)), g.edge(link)
	*e = edge{owner: owner << 2, after: of.first}
	if r.Blocks {
		e.owner |= blocks
	}
	if g.owns(g.nodes.at(owner), dependent) {
		e.owner |= valid
	}
	if of.first != 0 {
		g.edge(of.first).before = link
	}
	of.first = link
	g.edges++
	g.count(link, 1, nil)
}

// disconnect removes an edge from its owner, for which the owner may be waiting.
func (g *Graph) disconnect(link uint32, look func(WorkItem)) {
	g.count(link, -1, look)
	e, dependent := *g.edge(link), g.dependent(link)
	n := g.nodes.at(e.to())
	if e.before != 0 {
		g.edge(e.before).after = e.after
	} else {
		g.rest.at(n.rest).first = e.after
	}
	if e.after != 0 {
		g.edge(e.after).before = e.before
	}
	*g.edge(link) = edge{}
	if link&1 != 0 {
		g.further.give(link >> 1)
	}
	g.edges--
	g.release(n)
	if e.to() != dependent {
		g.drop(e.to())
	}
}

// block changes whether a reference blocks, and reports whether it did not before.
func (g *Graph) block(link uint32, is bool, look func(WorkItem)) (changed bool) {
	e := g.edge(link)
	if e.has(blocks) == is {
		return false
	}
	g.count(link, -1, func(WorkItem) {})
	e.owner ^= blocks
	g.count(link, 1, nil)
	n := g.nodes.at(e.to())
	if e.has(valid) && !is && e.to() != g.dependent(link) && g.rest.at(n.rest).blocking == 0 && n.state()&Foreground != 0 {
		look(WorkItem{n.id, n.namespace})
	}
	return true
}
