package graph

// MarkUrgent marks an object whose next change is processed without delay.
func (g *Graph) MarkUrgent(id ID) { g.mark(id, urgent) }

// ClearUrgent removes the mark, and reports whether it was set.
func (g *Graph) ClearUrgent(id ID) (was bool) {
	if i := g.find(id); i != 0 {
		was = g.nodes.at(i).has(urgent)
		g.nodes.at(i).clear(urgent)
	}
	return was
}

// Park marks an object whose owners cannot be judged now.
func (g *Graph) Park(id ID) { g.mark(id, parked) }

func (g *Graph) mark(id ID, flag uint8) {
	if i := g.find(id); i != 0 {
		g.nodes.at(i).set(flag)
	}
}

// Unpark calls fn with all objects that Park has marked, and removes the marks.
func (g *Graph) Unpark(fn func(WorkItem)) {
	g.each(func(n *node) {
		if n.has(parked) {
			n.clear(parked)
			fn(WorkItem{n.id, n.namespace})
		}
	})
}

// Begin announces that all objects of a kind are set again. Those that were not when Missing is
// called are gone.
func (g *Graph) Begin(kind uint32) {
	g.each(func(n *node) {
		if n.has(located) && n.kind() == kind {
			n.clear(seen)
		}
	})
}

// Missing lists the objects of a kind that were not set or located since Begin.
func (g *Graph) Missing(kind uint32) (list []ID) {
	g.each(func(n *node) {
		if n.has(located) && !n.has(absent) && n.kind() == kind && !n.has(seen) {
			list = append(list, n.id)
		}
	})
	return list
}

// Uses reports whether any object of a kind is known, be it that it was seen going.
func (g *Graph) Uses(kind uint32) (found bool) {
	g.each(func(n *node) { found = found || n.has(located) && n.kind() == kind })
	return found
}

// each calls fn with all nodes. It must not add or drop any.
func (g *Graph) each(fn func(*node)) {
	for i := uint32(1); i <= g.nodes.used; i++ {
		if n := g.nodes.at(i); n.used() {
			fn(n)
		}
	}
}
