package graph

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
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
