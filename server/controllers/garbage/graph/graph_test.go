package graph_test

import (
	"slices"
	"strings"
	"testing"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// world is a graph whose objects have short names.
type world struct {
	*graph.Graph
	names map[graph.ID]string
	queue []string // names of the objects that the graph reported
}

func newWorld() *world { return &world{Graph: graph.New(), names: map[graph.ID]string{}} }

func (w *world) id(name string) graph.ID {
	id := graph.IDOf("uid of " + name)
	w.names[id] = name
	return id
}

func (w *world) look(l graph.WorkItem) { w.queue = append(w.queue, w.names[l.ID]) }

// queued returns the objects that the graph has reported since the last call.
func (w *world) queued() string {
	slices.Sort(w.queue)
	names := strings.Join(slices.Compact(w.queue), " ")
	w.queue = nil
	return names
}

func place(kind uint32, name string) graph.Place {
	return graph.Place{Kind: kind, Namespace: unique.Make(namespaceOf(name)), Name: name}
}

// namespaceOf returns where an object is: d and e are in a namespace of their own, f and g in none.
func namespaceOf(name string) string {
	switch name {
	case "d", "e":
		return "other"
	case "f", "g":
		return ""
	}
	return "default"
}

// do follows a line: "set NAME STATE OWNER..." or "gone NAME". A state is "-", "foreground" or
// "orphaning"; an owner with a "!" is blocked.
func (w *world) do(line string) (changed bool) {
	words := strings.Fields(line)
	if p := place(1, words[1]); words[0] == "gone" {
		w.Gone(w.id(words[1]), &p, w.look)
		return false
	}
	o := graph.Object{ID: w.id(words[1]), Place: place(1, words[1])}
	o.State = map[string]graph.State{"-": 0, "foreground": graph.Foreground, "orphaning": graph.Orphaning}[words[2]]
	for _, owner := range words[3:] {
		name, blocks := strings.CutSuffix(owner, "!")
		o.Refs = append(o.Refs, graph.Ref{Owner: w.id(name), Blocks: blocks})
	}
	return w.Set(&o, w.look)
}

// Each line is followed by the objects to process then.
func TestWhoIsLookedAt(t *testing.T) {
	for name, script := range map[string][][2]string{
		"an owner goes":            {{"set a -", ""}, {"set b - a", ""}, {"set c - a!", ""}, {"gone a", "b c"}, {"gone b", ""}, {"gone c", ""}},
		"one that nobody has seen": {{"set b - a", ""}, {"gone a", "b"}},
		"the foreground": {
			{"set b - a!", ""}, {"set c - a", ""}, {"set a foreground", "a b c"}, {"set a foreground", ""}, {"gone b", "a"}, {"gone a", "c"},
		},
		"one that is unblocked":          {{"set b - a!", ""}, {"set a foreground", "a b"}, {"set b - a", "a"}},
		"a reference that is taken away": {{"set b - a!", ""}, {"set c - a!", ""}, {"set a foreground", "a b c"}, {"set b - x", ""}, {"set c -", "a"}},
		"orphans": {
			{"set b - a", ""}, {"set c - a!", ""}, {"set a orphaning", "a b c"}, {"set b -", ""}, {"set c -", "a"}, {"gone a", ""},
		},
		"waiting for nobody":       {{"set a foreground", "a"}, {"gone a", ""}, {"set a orphaning", "a"}, {"gone a", ""}},
		"one's own owner":          {{"set a - a!", ""}, {"set a foreground a!", "a"}, {"gone a", ""}},
		"a circle":                 {{"set a - b!", ""}, {"set b - a!", ""}, {"set a foreground b!", "a b"}, {"set b foreground a!", "a b"}, {"set b foreground a", "a"}, {"gone a", "b"}, {"gone b", ""}},
		"the same owner twice":     {{"set b - a a!", ""}, {"set a foreground", "a b"}, {"gone b", "a"}},
		"in another namespace":     {{"set d - a! b!", ""}, {"set b - a!", ""}, {"set a foreground", "a b d"}, {"gone b", "a d"}, {"gone a", "d"}, {"gone d", ""}},
		"of the cluster":           {{"set a -", ""}, {"set f - a!", ""}, {"set b - a f!", ""}, {"set a orphaning", "a b f"}, {"set b - f!", "a"}, {"set f foreground", "b f"}, {"gone b", "f"}},
		"seen late":                {{"set d - a!", ""}, {"set a foreground", "a d"}, {"gone d", ""}, {"gone a", ""}},
		"one kind of waiting ends": {{"set b - a!", ""}, {"set a orphaning", "a b"}, {"set a foreground", "a b"}, {"gone b", "a"}},
	} {
		w := newWorld()
		for _, step := range script {
			w.do(step[0])
			if got := w.queued(); got != step[1] {
				t.Errorf("%s: after %q the graph reports %q, want %q", name, step[0], got, step[1])
			}
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	w := newWorld()
	for _, c := range []struct {
		line         string
		changed      bool
		nodes, edges int
	}{
		{"set a -", false, 0, 0},
		{"set b - a", true, 2, 1},
		{"set a -", false, 2, 1},
		{"set b - a", false, 2, 1},
		{"set b - a!", true, 2, 1},
		{"set b - a! c", true, 3, 2},
		{"gone a", false, 3, 2},
		{"set b - c", true, 2, 1},
		{"set c foreground d e f g", true, 6, 5},
		{"gone c", false, 2, 1},
		{"gone b", false, 0, 0},
	} {
		if changed := w.do(c.line); changed != c.changed {
			t.Errorf("%q changed something: %v", c.line, changed)
		}
		if nodes, edges := w.Len(); nodes != c.nodes || edges != c.edges {
			t.Errorf("after %q there are %d objects and %d references, want %d and %d", c.line, nodes, edges, c.nodes, c.edges)
		}
	}
}

func TestFind(t *testing.T) {
	w := newWorld()
	w.do("set b - a!")
	if n, ok := w.Find(w.id("a")); !ok || n.Located || !n.Dependents || n.Blocking != 1 {
		t.Errorf("an owner that was not seen is %+v", n)
	}
	p := place(7, "a")
	w.Locate(w.id("a"), &p)
	w.Locate(w.id("nobody"), &p)
	p = place(8, "other")
	w.Locate(w.id("a"), &p)
	want := graph.Node{Place: place(7, "a"), Located: true, Dependents: true, Blocking: 1}
	if n, _ := w.Find(w.id("a")); !cmp.Equal(n, want, cmp.Comparer(func(a, b unique.Handle[string]) bool { return a == b })) {
		t.Errorf("it is %+v, want %+v", n, want)
	}
	w.do("gone a")
	if n, ok := w.Find(w.id("a")); !ok || !n.Absent {
		t.Errorf("one that is gone is %+v", n)
	}
	if !w.Uses(1) || w.Uses(7) || w.Uses(9) {
		t.Error("it is at the place that it was gone from")
	}
	w.do("set a -")
	if n, ok := w.Find(w.id("a")); !ok || n.Absent {
		t.Errorf("one that is there again is %+v", n)
	}
	if _, ok := w.Find(w.id("nobody")); ok {
		t.Error("nobody is known")
	}
}

func TestMarks(t *testing.T) {
	w := newWorld()
	w.do("set b - a")
	w.do("set c - a")
	w.MarkUrgent(w.id("b"))
	if !w.ClearUrgent(w.id("b")) || w.ClearUrgent(w.id("b")) || w.ClearUrgent(w.id("c")) || w.ClearUrgent(w.id("nobody")) {
		t.Error("one is hurried, once")
	}
	w.Park(w.id("c"))
	w.Unpark(w.look)
	if got := w.queued(); got != "c" {
		t.Errorf("Unpark reports %q", got)
	}
	if w.Unpark(w.look); w.queued() != "" {
		t.Error("they are parked once")
	}
	w.Begin(1)
	w.do("set b - a")
	if lost := w.Missing(1); len(lost) != 1 || w.names[lost[0]] != "c" {
		t.Errorf("lost is %v", lost)
	}
}

func TestIDs(t *testing.T) {
	seen := map[graph.ID]string{}
	for _, uid := range []string{
		"", "a", "01234567-89ab-cdef-0123-456789abcdef", "01234567-89AB-cdef-0123-456789abcdef", "0123456789abcdef0123456789abcdef",
		"01234567-89ab-cdef-0123-456789abcdeg", "01234567-89ab-cdef-0123-456789abcdee", "01234567x89ab-cdef-0123-456789abcdef",
	} {
		id := graph.IDOf(uid)
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q are the same", uid, other)
		}
		seen[id] = uid
	}
}
