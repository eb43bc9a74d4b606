package graph

import (
	"encoding/binary"
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
	id := func() (id ID) {
		binary.BigEndian.PutUint64(id[:], r.Uint64N(5000))
		return id
	}
	for step := range 200_000 {
		one := id()
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

// TestMemoryOfNodes: a million dependents take a million nodes, and the state of an owner is freed with its last dependent.
func TestMemoryOfNodes(t *testing.T) {
	if node, edge := unsafe.Sizeof(node{}), unsafe.Sizeof(edge{}); node != 48 || edge != 24 {
		t.Errorf("a node has %d bytes, and an edge %d", node, edge)
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
		if n := g.owning.len(); n != 2 {
			t.Errorf("%d objects have dependents", n)
		}
		if one, _ := g.Find(IDOf("one")); one.Blocking != 2 {
			t.Errorf("%d objects wait for one", one.Blocking)
		}
		set("a", 0)
		set("b", 0)
		if n := g.owning.len(); n != 0 {
			t.Errorf("%d objects have dependents that are gone", n)
		}
	}
}
