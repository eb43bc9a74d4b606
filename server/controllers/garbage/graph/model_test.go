package graph_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// model is the reference implementation of the graph, as simple as possible.
type model map[string]*object

type object struct {
	state graph.State
	owns  map[string]bool // owner -> blocks
	gone  bool
	// located: it was seen since the graph knows it
	located bool
}

// owner reports whether an object can own another, by where they are.
func (m model) owner(owner, dependent string) bool {
	o := m[owner]
	return o == nil || !o.located || namespaceOf(owner) == "" || namespaceOf(owner) == namespaceOf(dependent)
}

// known reports whether the graph knows an object.
func (m model) known(name string) bool {
	o := m[name]
	if o != nil && (len(o.owns) > 0 || o.state != 0) {
		return true
	}
	for _, other := range m {
		if _, ok := other.owns[name]; ok {
			return true
		}
	}
	return false
}

// blocking counts the dependents that block an object.
func (m model) blocking(name string) (n, dependents int) {
	for other, o := range m {
		blocks, ok := o.owns[name]
		if ok && !o.gone && m.owner(name, other) {
			if dependents++; blocks && other != name {
				n++
			}
		}
	}
	return n, dependents
}

// step changes the model, and returns the objects to process.
func (m model) step(name string, now *object) (look map[string]bool) {
	look = map[string]bool{}
	old := m[name]
	if old == nil {
		old = &object{gone: true}
	}
	type waits struct{ blocking, dependents int }
	before := map[string]waits{}
	for other := range m {
		b, d := m.blocking(other)
		before[other] = waits{b, d}
	}
	now.located = true
	m[name] = now
	for other, o := range m {
		b, d := m.blocking(other)
		state := o.state
		if other == name { // its references change before its state does
			state = old.state
		}
		if now.gone && other == name {
			state = 0
		}
		if state == graph.Foreground && before[other].blocking > 0 && b == 0 || state == graph.Orphaning && before[other].dependents > 0 && d == 0 {
			look[other] = true
		}
		if _, owned := o.owns[name]; owned && !o.gone && (now.gone || now.state&^old.state != 0) {
			look[other] = true
		}
	}
	if now.state&^old.state != 0 {
		look[name] = true
	}
	for other, o := range m {
		o.located = o.located && m.known(other)
	}
	return look
}

// TestModel changes a few objects at random and holds the graph to the model.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 60 {
		w, m := newWorld(), model{}
		for step := range 200 {
			name := string(rune('a' + r.IntN(7)))
			line, now := "gone "+name, &object{gone: true}
			if r.IntN(4) > 0 {
				now = &object{state: []graph.State{0, 0, graph.Foreground, graph.Orphaning}[r.IntN(4)], owns: map[string]bool{}}
				line = "set " + name + " " + []string{"-", "foreground", "orphaning"}[now.state]
				for range r.IntN(4) {
					owner, blocks := string(rune('a'+r.IntN(7))), r.IntN(2) == 0
					now.owns[owner] = now.owns[owner] || blocks
					line += " " + owner + map[bool]string{true: "!"}[blocks]
				}
			}
			if was := m[name]; now.gone && (was == nil || was.gone) && len(m) > 0 {
				if !m.known(name) {
					continue
				}
			}
			want := m.step(name, now)
			w.do(line)
			var names []string
			for other := range want {
				names = append(names, other)
			}
			slices.Sort(names)
			if got := w.queued(); got != strings.Join(names, " ") {
				t.Fatalf("step %d, %q: the graph reports %q, want %q", step, line, got, strings.Join(names, " "))
			}
			check(t, w, m)
		}
	}
}

func check(t *testing.T, w *world, m model) {
	t.Helper()
	edges := 0
	for c := 'a'; c < 'h'; c++ {
		name := string(c)
		blocking, dependents := m.blocking(name)
		n, ok := w.Find(w.id(name))
		o := m[name]
		if o == nil {
			o = &object{gone: true}
		}
		edges += len(o.owns)
		if want := m.known(name); ok != want {
			t.Fatalf("%s is known: %v", name, ok)
		}
		if ok && (n.Blocking != blocking || n.Dependents != (dependents > 0) || n.State != o.state) {
			t.Fatalf("%s is %+v; %d block it, of %d", name, n, blocking, dependents)
		}
		var got []string
		w.Dependents(w.id(name), func(id graph.ID, _ graph.State) bool {
			got = append(got, w.names[id])
			return true
		})
		if len(got) != dependents {
			t.Fatalf("dependents of %s are %q, want %d", name, got, dependents)
		}
	}
	if _, n := w.Len(); n != edges {
		t.Fatalf("%d references, want %d", n, edges)
	}
}

// TestMemory: a dependent with one owner takes a node and a slot, and all memory of removed objects is reused.
func TestMemory(t *testing.T) {
	const many = 100_000
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprint("pod-", i)
	}
	g := graph.New()
	size := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := size()
	owner := graph.IDOf("owner")
	for i, name := range names {
		o := graph.Object{ID: graph.IDOf(name), Place: place(1, name), Refs: []graph.Ref{{Owner: owner, Blocks: true}}}
		if i%10 == 0 {
			owner = graph.IDOf("owner of " + name)
		}
		g.Set(&o, func(graph.WorkItem) { t.Error("nobody is to be looked at") })
	}
	each := float64(size()-before) / many
	t.Logf("%.0f bytes a dependent", each)
	if each > 80 {
		t.Errorf("%.0f bytes a dependent", each)
	}
	for _, name := range names {
		p := place(1, name)
		g.Gone(graph.IDOf(name), &p, func(graph.WorkItem) {})
	}
	if nodes, edges := g.Len(); nodes != 0 || edges != 0 {
		t.Errorf("%d objects and %d references are left", nodes, edges)
	}
	if left := size() - before; left > 1<<20 {
		t.Errorf("%d bytes are left", left)
	}
	runtime.KeepAlive(g)
	runtime.KeepAlive(names)
}
