package graph

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestIndex: the index finds what a map finds, whatever was added and removed before.
func TestIndex(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	g, known := New(), map[ID]uint32{}
	ids := make([]ID, 5000)
	for i := range ids {
		ids[i] = ID(r.Uint64())
	}
	for step := range 200_000 {
		one := ids[r.IntN(len(ids))]
		i, there := known[one]
		switch grow := step/20_000%2 == 0; {
		case g.find(one) != i:
			t.Fatalf("step %d: found %d instead of %d", step, g.find(one), i)
		case !there && (grow || r.IntN(4) == 0):
			known[one] = g.add(one)
		case there && (!grow || r.IntN(4) == 0):
			g.byID.remove(i, &g.nodes)
			g.nodes.give(i)
			delete(known, one)
		}
	}
	used, slots := 0, 0
	for i := range g.byID.tables {
		used, slots = used+g.byID.tables[i].used, slots+len(g.byID.tables[i].slots)
	}
	if used != len(known) || g.nodes.len() != len(known) || slots > 2*5000*5/4+8*tables {
		t.Errorf("%d of %d nodes are in %d slots", used, len(known), slots)
	}
	for one, i := range known {
		if g.find(one) != i {
			t.Errorf("%d is %d", i, g.find(one))
		}
	}
}

// TestMemoryOfNodes: a million dependents take a million nodes, and what else an object has is freed with its last reference.
func TestMemoryOfNodes(t *testing.T) {
	if node, further := unsafe.Sizeof(node{}), unsafe.Sizeof(further{}); node != 48 || further != 20 {
		t.Errorf("a node has %d bytes, and a further edge %d", node, further)
	}
	g := New()
	set := func(name string, state State, owners ...string) {
		o := Object{ID: IDOf(name), Place: Place{Namespace: cluster, Name: name}, State: state}
		for _, owner := range owners {
			o.Refs = append(o.Refs, Ref{Owner: IDOf(owner), Blocks: true})
		}
		g.Set(&o, func(WorkItem) {})
	}
	set("stays", Foreground)
	for range 3 {
		set("a", 0, "one", "two")
		set("b", 0, "one")
		if rest, further := g.rest.len(), g.further.len(); rest != 3 || further != 1 {
			t.Errorf("%d objects have dependents or several owners, and there are %d further references", rest, further)
		}
		if one, _ := g.Find(IDOf("one")); one.Blocking != 2 {
			t.Errorf("%d objects wait for one", one.Blocking)
		}
		set("a", 0)
		set("b", 0)
		if rest, further := g.rest.len(), g.further.len(); rest != 0 || further != 0 {
			t.Errorf("%d entries and %d references are of objects that have none", rest, further)
		}
	}
}
