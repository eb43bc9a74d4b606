package graph

// index finds nodes by their IDs, which are hashes: numbers of nodes in hash tables with open addressing; a map
// would store each ID once more. There are many tables, so that growing one is cheap.
type index struct {
	tables [tables]table
}

const tables = 64

// table is a hash table. Its length is 0 or a power of 2, and at least one slot in five is free.
type table struct {
	slots []uint32 // 0: free
	used  int
}

// at returns the table of an ID, and where in it looking for the ID begins.
func (x *index) at(id ID) (t *table, from int) { return &x.tables[id%tables], int(id / tables >> 1) }

// find returns the number of a node, or 0.
func (x *index) find(id ID, nodes *arena[node]) uint32 {
	t, at := x.at(id)
	if t.used == 0 {
		return 0
	}
	for ; ; at++ {
		i := t.slots[at&(len(t.slots)-1)]
		if i == 0 || nodes.at(i).id == id {
			return i
		}
	}
}

// add takes a node that is not there yet.
func (x *index) add(i uint32, nodes *arena[node]) {
	t, at := x.at(nodes.at(i).id)
	if (t.used+1)*5 > len(t.slots)*4 {
		old := t.slots
		t.slots = make([]uint32, max(8, 2*len(old)))
		for _, o := range old {
			if o != 0 {
				_, from := x.at(nodes.at(o).id)
				t.put(o, from)
			}
		}
	}
	t.put(i, at)
	t.used++
}

func (t *table) put(i uint32, at int) {
	for t.slots[at&(len(t.slots)-1)] != 0 {
		at++
	}
	t.slots[at&(len(t.slots)-1)] = i
}

// remove takes away a node that is there. Those behind it move up, as far as they may.
func (x *index) remove(i uint32, nodes *arena[node]) {
	t, at := x.at(nodes.at(i).id)
	mask := len(t.slots) - 1
	at &= mask
	for t.slots[at] != i {
		at = (at + 1) & mask
	}
	for next := (at + 1) & mask; t.slots[next] != 0; next = (next + 1) & mask {
		_, from := x.at(nodes.at(t.slots[next]).id)
		if (next-from)&mask >= (next-at)&mask { // it would be looked for from the free slot or before it
			t.slots[at] = t.slots[next]
			at = next
		}
	}
	t.slots[at] = 0
	t.used--
}
