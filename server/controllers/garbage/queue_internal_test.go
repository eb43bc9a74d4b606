package garbage

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// line is a queue with a clock of its own, whose objects are called "namespace/name".
type line struct {
	*queue
	now   time.Time
	added int
	names map[graph.ID]string
	held  map[string]*entry
}

func newLine() *line {
	l := &line{now: time.Unix(1000, 0), names: map[graph.ID]string{}, held: map[string]*entry{}}
	l.queue = newQueue(func() time.Time { return l.now }, func() { l.added++ }, func() {})
	return l
}

func (l *line) put(name string, after time.Duration) {
	id := graph.IDOf(name)
	l.names[id] = name
	namespace, _, _ := strings.Cut(name, "/")
	l.add(graph.Look{ID: id, Namespace: unique.Make(namespace)}, after)
}

// take hires a worker and takes objects until none is left or there are so many.
func (l *line) take(most int) string {
	l.ripen()
	var names []string
	if l.hire(1) == 0 {
		return ""
	}
	for range most {
		e, ok := l.next()
		if !ok {
			return strings.Join(names, " ")
		}
		l.held[l.names[e.id]] = e
		names = append(names, l.names[e.id])
	}
	l.workers--
	return strings.Join(names, " ")
}

func (l *line) end(name string, again bool) time.Duration { return l.done(l.held[name], again) }

func TestNamespacesTakeTurns(t *testing.T) {
	l := newLine()
	for i := range 4 {
		l.put(fmt.Sprint("a/", i), 0)
	}
	l.put("b/0", 0)
	l.put("c/0", 0)
	l.put("b/1", 0)
	if got := l.take(9); got != "a/0 b/0 c/0 a/1 b/1 a/2 a/3" {
		t.Errorf("objects are taken in the order %q", got)
	}
}

func TestWhenObjectsAreDue(t *testing.T) {
	l := newLine()
	l.put("a/later", time.Second)
	l.put("a/now", 0)
	l.put("a/later", time.Hour)
	if next, any := l.ripen(); !any || next != l.now.Add(time.Second) {
		t.Errorf("the next one is due at %v", next)
	}
	if got := l.take(9); got != "a/now" {
		t.Errorf("due is %q", got)
	}
	l.now = l.now.Add(time.Second)
	if got := l.take(9); got != "a/later" {
		t.Errorf("a second later due is %q", got)
	}
	l.put("a/sooner", time.Hour)
	l.put("a/sooner", 0)
	if got := l.take(9); got != "a/sooner" {
		t.Errorf("what is to be sooner: %q", got)
	}
	if l.added == 0 {
		t.Error("nobody is told")
	}
}

// An object is worked on by one at a time, and again if it is put in meanwhile.
func TestObjectsAgain(t *testing.T) {
	l := newLine()
	l.put("a/x", 0)
	l.take(1)
	l.put("a/x", 0)
	l.put("a/x", 0)
	if got := l.take(1); got != "" {
		t.Errorf("it is worked on twice: %q", got)
	}
	if l.end("a/x", false); l.take(1) != "a/x" {
		t.Error("it is not worked on again")
	}
	l.end("a/x", false)
	if got := l.take(1); got != "" || len(l.entries) != 0 {
		t.Errorf("left are %q and %d", got, len(l.entries))
	}
}

// What fails rests, longer each time; a reason to look at it comes before that.
func TestFailuresRest(t *testing.T) {
	l := newLine()
	l.put("a/x", 0)
	for want := firstRest; ; want = min(2*want, longRest) {
		if got := l.take(1); got != "a/x" {
			t.Fatalf("after %v due is %q", want, got)
		}
		if rest := l.end("a/x", true); rest != want {
			t.Fatalf("it rests for %v, want %v", rest, want)
		}
		l.now = l.now.Add(want - 1)
		if got := l.take(1); got != "" {
			t.Fatalf("it does not rest for %v", want)
		}
		l.now = l.now.Add(1)
		if want == longRest {
			break
		}
	}
	l.take(1)
	l.end("a/x", true)
	if l.put("a/x", 0); l.take(1) != "a/x" {
		t.Error("a change of an owner does not wait")
	}
	if l.end("a/x", false); len(l.entries) != 0 {
		t.Error("what is done is forgotten")
	}
}

func TestWorkers(t *testing.T) {
	l := newLine()
	for i := range 30 {
		l.put(fmt.Sprint("a/", i), 0)
	}
	if n := l.hire(20); n != 20 {
		t.Errorf("%d workers begin", n)
	}
	if n := l.hire(20); n != 0 {
		t.Errorf("%d more workers begin", n)
	}
	for range 30 {
		l.next()
	}
	for range 20 {
		if _, ok := l.next(); ok {
			t.Fatal("there are more than 30")
		}
	}
	l.put("a/more", 0)
	if n := l.hire(20); n != 1 {
		t.Errorf("%d workers begin for one object", n)
	}
}

func TestAllowance(t *testing.T) {
	now := time.Unix(1000, 0)
	a := allowance{most: 3, perSecond: 2}
	for i, c := range []struct {
		after time.Duration
		n     int
		want  bool
	}{{0, 2, true}, {0, 2, false}, {0, 1, true}, {0, 1, false}, {time.Second, 2, true}, {0, 1, false}, {time.Hour, 4, false}, {0, 3, true}, {-time.Hour, 1, false}} {
		if now = now.Add(c.after); a.take(c.n, now) != c.want {
			t.Errorf("step %d: %v", i, !c.want)
		}
	}
}
