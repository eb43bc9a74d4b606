package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// podCatalogue knows one storage with an indexed field.
func podCatalogue() *kinds.Catalogue {
	return kinds.NewCatalogue([]*kinds.Resource{{
		Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true, New: func() kinds.Object { return &corev1.Pod{} },
		Storage: &kinds.Storage{
			Key: "pods", GVK: corev1.SchemeGroupVersion.WithKind("Pod"),
			Indexed: []string{"spec.nodeName"},
			Fields: []kinds.SelectableField{
				{Label: "spec.nodeName", Path: []string{"spec", "nodeName"}},
				{Label: "status.phase", Path: []string{"status", "phase"}},
			},
		},
	}})
}

type state struct {
	revision int64
	value    string
}

// log makes changes as a store would, and can be read back.
type log struct {
	revision int64
	floor    int64
	live     map[sqlstore.Key]state
	changes  []sqlstore.Change
}

func newLog() *log { return &log{live: map[sqlstore.Key]state{}} }

func (l *log) write(namespace, name, value string) sqlstore.Change {
	return l.change(sqlstore.Key{Resource: "pods", Namespace: namespace, Name: name}, within(namespace, value), false)
}

func (l *log) remove(namespace, name string) sqlstore.Change {
	key := sqlstore.Key{Resource: "pods", Namespace: namespace, Name: name}
	return l.change(key, l.live[key].value, true)
}

func (l *log) change(key sqlstore.Key, value string, deleted bool) sqlstore.Change {
	l.revision++
	ch := sqlstore.Change{Row: sqlstore.Row{Key: key, Revision: l.revision, Created: 1, Value: []byte(value), Deleted: deleted}}
	if old, ok := l.live[key]; ok {
		ch.PrevRevision, ch.PrevValue = old.revision, []byte(old.value)
	}
	if deleted {
		delete(l.live, key)
	} else {
		l.live[key] = state{l.revision, value}
	}
	l.changes = append(l.changes, ch)
	return ch
}

func (l *log) Floor() int64 { return l.floor }

func (l *log) Changes(_ context.Context, after int64, limit int, _ bool) ([]sqlstore.Change, error) {
	if after < l.floor {
		return nil, &sqlstore.CompactedError{Revision: after, Floor: l.floor}
	}
	out := l.changes[after:]
	return append([]sqlstore.Change(nil), out[:min(limit, len(out))]...), nil
}

func pod(name, node, labels string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"uid":"u-%s","labels":{%s}},"spec":{"nodeName":%q}}`,
		name, name, labels, node)
}

// within puts a namespace into an object that has a UID.
func within(namespace, value string) string {
	return strings.Replace(value, `"uid":`, fmt.Sprintf(`"namespace":%q,"uid":`, namespace), 1)
}

func names(s *cache.Snapshot, f *cache.Filter, namespace, afterNS, afterName string) (out []string) {
	from := cache.Position{Namespace: afterNS}
	if afterName != "" {
		from = cache.After(afterNS, afterName)
	}
	s.Select(f, namespace, from, func(it *cache.Item) bool {
		out = append(out, it.Namespace+"/"+it.Name)
		return true
	})
	return out
}

func selector(t testing.TB, s string) labels.Selector {
	t.Helper()
	sel, err := labels.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

func TestSnapshots(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	c.Apply([]sqlstore.Change{
		l.write("a", "p1", pod("p1", "n1", `"app":"x"`)),
		l.write("a", "p2", pod("p2", "n2", `"app":"y"`)),
		l.write("b", "p1", pod("p1", "n1", `"app":"x","tier":"1"`)),
	})
	before := c.Snapshot("pods")
	before.Pin()
	c.Apply([]sqlstore.Change{l.write("a", "p1", pod("p1", "n2", `"app":"y"`))})
	c.Apply([]sqlstore.Change{l.remove("b", "p1")})
	now := c.Snapshot("pods")
	node := func(n string) *cache.Filter { return cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: n}}) }
	app := func(s string) *cache.Filter { return cache.NewFilter(selector(t, s), nil) }
	name := cache.NewFilter(nil, []cache.FieldTerm{{Index: cache.FieldName, Value: "p1"}})
	many := "tier in (0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)"
	for _, tc := range []struct {
		about    string
		snap     *cache.Snapshot
		f        *cache.Filter
		ns       string
		from, at string
		want     []string
	}{
		{"all", before, nil, "", "", "", []string{"a/p1", "a/p2", "b/p1"}},
		{"namespace", before, nil, "a", "", "", []string{"a/p1", "a/p2"}},
		{"after", before, nil, "", "a", "p1", []string{"a/p2", "b/p1"}},
		{"after, of another namespace", before, nil, "b", "a", "p1", []string{"b/p1"}},
		{"node", before, node("n1"), "", "", "", []string{"a/p1", "b/p1"}},
		{"node after", before, node("n1"), "", "a", "p1", []string{"b/p1"}},
		{"node in namespace", before, node("n1"), "b", "", "", []string{"b/p1"}},
		{"label", before, app("app=x"), "", "", "", []string{"a/p1", "b/p1"}},
		{"labels", before, app("app in (x),tier=1"), "", "", "", []string{"b/p1"}},
		{"label set", before, app("app in (x,y),tier!=1"), "", "", "", []string{"a/p1", "a/p2"}},
		{"node and many labels", before, cache.NewFilter(selector(t, many), node("n1").Fields), "", "", "", []string{"b/p1"}},
		{"name", before, name, "", "", "", []string{"a/p1", "b/p1"}},
		{"name in namespace", before, name, "b", "", "", []string{"b/p1"}},
		{"name, passed already", before, name, "b", "b", "p1", nil},
		{"now", now, nil, "", "", "", []string{"a/p1", "a/p2"}},
		{"node now", now, node("n2"), "", "", "", []string{"a/p1", "a/p2"}},
		{"node now, gone", now, node("n1"), "", "", "", nil},
		{"label now", now, app("app=y"), "", "", "", []string{"a/p1", "a/p2"}},
		{"label now, gone", now, app("app=x"), "", "", "", nil},
		{"pinned", c.At("pods", before.Revision), app("app=x"), "", "", "", []string{"a/p1", "b/p1"}},
	} {
		if got := names(tc.snap, tc.f, tc.ns, tc.from, tc.at); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %v, want %v", tc.about, got, tc.want)
		}
	}
	if got := before.Count("", cache.After("a", "p1")); got != 2 {
		t.Errorf("count after a/p1: %d", got)
	}
	if got := before.Count("a", cache.Position{}); got != 2 {
		t.Errorf("count of a: %d", got)
	}
	for revision, want := range map[int64]string{
		1: "[a/p1]", 2: "[a/p1 a/p2]", 4: "[a/p1 a/p2 b/p1]", 5: "[a/p1 a/p2]",
	} {
		if got := fmt.Sprint(names(c.At("pods", revision), nil, "", "", "")); got != want {
			t.Errorf("rewound to %d: %s, want %s", revision, got, want)
		}
	}
	if c.At("pods", 6) != nil {
		t.Error("a snapshot of the future")
	}
	want := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p1","namespace":"a","uid":"u-p1","resourceVersion":"4","labels":{"app":"y"}},"spec":{"nodeName":"n2"}}`
	it := c.Get("pods", "a", "p1")
	if string(it.JSON()) != want {
		t.Errorf("item %s", it.JSON())
	}
	if body := string(it.Body()); body != want[len(`{"kind":"Pod","apiVersion":"v1",`):] {
		t.Errorf("body %s", body)
	}
}

func TestCorrupt(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	for i, v := range []string{`{"metadata":{"name":"x"`, `nonsense`, ``, `{"kind":"Pod"}`} {
		name := fmt.Sprint("p", i)
		c.Apply([]sqlstore.Change{l.write("a", name, v)})
		if it := c.Get("pods", "a", name); it == nil || it.Err() == nil {
			t.Errorf("%q is taken for an object", v)
		}
	}
	c.Apply([]sqlstore.Change{l.remove("a", "p1")})
	if c.Get("pods", "a", "p1") != nil {
		t.Error("a corrupt item cannot be deleted")
	}
}

func TestWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := cache.New(podCatalogue()), newLog()
		go func() {
			time.Sleep(time.Second)
			c.Apply([]sqlstore.Change{l.write("a", "p", pod("p", "", ""))})
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := c.WaitFor(ctx, 1); err != nil || time.Since(start) != time.Second {
			t.Errorf("waited %v: %v", time.Since(start), err)
		}
		if err := c.WaitFor(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a revision that never comes: %v", err)
		}
	})
}

func TestPendingGetsTheItem(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	ch := l.write("a", "p", pod("p", "", ""))
	p := &cache.Pending{}
	ch.Aux = p
	c.Apply([]sqlstore.Change{ch})
	if p.Item == nil || p.Item != c.Get("pods", "a", "p") {
		t.Error("the writer does not see what readers see")
	}
}

// table is the source that Load reads: the live objects of a log.
type table struct{ *log }

func (l table) Head(context.Context) (int64, error) { return l.revision, nil }

func (table) CheckRows(context.Context, bool, func([]sqlstore.Row) error) error { return nil }

// ReadAll lends rows, as it promises to, in no order of keys.
func (l table) ReadAll(_ context.Context, _ int64, take func([]sqlstore.Row) error) error {
	for k, s := range l.live {
		value := []byte(s.value)
		if err := take([]sqlstore.Row{{Key: k, Revision: s.revision, Created: 1, Value: value}}); err != nil {
			return err
		}
		clear(value)
	}
	return nil
}

// TestLoadAnew loads a cache that was in use: snapshots taken before stay as they
// are, watchers learn that they missed something, and what follows reaches new ones.
func TestLoadAnew(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	l.write("a", "p1", pod("p1", "n1", ""))
	l.write("a", "p2", pod("p2", "n1", ""))
	l.write("a", "p3", pod("p3", "n1", ""))
	if at, err := c.Load(t.Context(), table{l}); err != nil || at != 3 {
		t.Fatal(at, err)
	}
	before := c.Snapshot("pods")
	kept := before.Get("a", "p1")
	w, _ := c.WatchNow("pods", cache.Scope{})
	defer w.Stop()
	ahead, err := c.Watch("pods", cache.Scope{}, 1000, l)
	if err != nil {
		t.Fatal(err)
	}
	defer ahead.Stop()

	// Missed by the feed.
	l.remove("a", "p2")
	l.write("a", "p3", pod("p3", "n2", ""))
	l.write("b", "p4", pod("p4", "n1", ""))
	l.floor = 6
	if at, err := c.Load(t.Context(), table{l}); err != nil || at != 6 || c.Revision() != 6 {
		t.Fatal(at, err)
	}
	if got := fmt.Sprint(names(before, nil, "", "", "")); got != "[a/p1 a/p2 a/p3]" || before.Get("a", "p3").Revision != 3 {
		t.Errorf("the former snapshot has %s", got)
	}
	after := c.Snapshot("pods")
	if got := fmt.Sprint(names(after, nil, "", "", "")); got != "[a/p1 a/p3 b/p4]" || after.Revision != 6 {
		t.Errorf("the snapshot at %d has %s", after.Revision, got)
	}
	if after.Get("a", "p1") != kept {
		t.Error("an unchanged item was made anew")
	}
	if i := slices.Index(names(after, nil, "", "", ""), "a/p3"); i < 0 || after.Get("a", "p3").Meta().Fields[0] != "n2" {
		t.Error("a changed item is as before")
	}
	select {
	case <-w.Ready():
	default:
		t.Error("the watcher was not woken")
	}
	var gone *sqlstore.CompactedError
	if _, _, err := w.Take(t.Context(), nil); !errors.As(err, &gone) {
		t.Errorf("the watcher gets %v", err)
	}
	if _, err := c.Watch("pods", cache.Scope{}, 4, l); !errors.As(err, &gone) {
		t.Errorf("a watch of what was missed gives %v", err)
	}
	if old := c.At("pods", 4); old != nil {
		t.Error("a revision that was missed can be read")
	}

	fresh, err := c.Watch("pods", cache.Scope{}, 6, l)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Stop()
	c.Apply([]sqlstore.Change{l.write("b", "p5", pod("p5", "n1", ""))})
	if got, _, err := fresh.Take(t.Context(), nil); err != nil || len(got) != 1 || got[0].Item().Name != "p5" {
		t.Errorf("a watcher from the new revision gets %v, %v", got, err)
	}
	if got, _, err := ahead.Take(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("a watcher of the future gets %v, %v", got, err)
	}
}

// keyless opens sealed values once it has the key.
type keyless struct{ has bool }

func (k *keyless) Open(_ context.Context, key sqlstore.Key, stored []byte) ([]byte, error) {
	if plain, ok := strings.CutPrefix(string(stored), "sealed:"); ok && k.has {
		return []byte(plain), nil
	}
	return nil, &sqlstore.UnsealError{Key: key, Err: errors.New("no key")}
}

// TestReopen: an object that could not be decrypted is there when its key comes back: for
// readers, for the index, for watches from before it, and for the server's followers, but
// not for clients' watches that go on.
func TestReopen(t *testing.T) {
	c, l, keys := cache.New(podCatalogue()), newLog(), &keyless{}
	sealed := func(name, node string) sqlstore.Change {
		ch := l.write("a", name, pod(name, node, ""))
		ch.Value, ch.Unopened = []byte("sealed:"+string(ch.Value)), errors.New("no key")
		return ch
	}
	follower, _ := c.WatchNow("pods", cache.Scope{})
	c.Apply([]sqlstore.Change{l.write("a", "good", pod("good", "n1", "")), sealed("x", "n1"), sealed("y", "n2")})
	if _, _, err := follower.Take(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	client, _ := c.WatchNow("pods", cache.Scope{Log: l})
	for _, name := range []string{"x", "y"} {
		if it := c.Get("pods", "a", name); it == nil || it.Err() == nil || !it.Sealed() || !strings.HasPrefix(string(it.JSON()), "sealed:") {
			t.Fatalf("%s is %+v", name, it)
		}
	}
	before := c.Snapshot("pods")
	if n := c.Reopen(t.Context(), keys); n != 0 || len(c.Corrupt()) != 2 {
		t.Fatalf("without the key %d were opened", n)
	}
	c.Apply([]sqlstore.Change{sealed("y", "n3")})
	keys.has = true
	if n := c.Reopen(t.Context(), keys); n != 2 || len(c.Corrupt()) != 0 {
		t.Fatalf("with the key %d were opened, %v are left", n, c.Corrupt())
	}
	it := c.Get("pods", "a", "x")
	if it.Err() != nil || it.Sealed() || it.Revision != 2 || !strings.Contains(string(it.JSON()), `"resourceVersion":"2"`) {
		t.Errorf("x is %+v", it)
	}
	if before.Get("a", "x").Err() == nil {
		t.Error("an older snapshot has changed")
	}
	var found []string
	c.Snapshot("pods").Select(&cache.Filter{Fields: []cache.FieldTerm{{Index: 0, Value: "n1"}}}, "", cache.Position{}, func(it *cache.Item) bool {
		found = append(found, it.Name)
		return true
	})
	if fmt.Sprint(found) != "[good x]" {
		t.Errorf("on n1 are %v", found)
	}
	late, err := c.Watch("pods", cache.Scope{}, 1, l)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := late.Take(t.Context(), nil)
	if err != nil || len(out) != 3 || out[0].Item() != it || out[0].Item().Err() != nil || out[2].Item().Err() != nil {
		t.Errorf("a watch from before sees %+v, %v", out, err)
	}
	out, _, _ = client.Take(t.Context(), nil)
	if len(out) != 1 || out[0].Revision() != 4 {
		t.Errorf("a client's watch sees %+v", out)
	}
	out, _, _ = follower.Take(t.Context(), nil)
	names := map[string]bool{}
	for _, d := range out {
		names[d.Item().Name] = d.Item().Err() == nil
	}
	if !names["x"] || !names["y"] {
		t.Errorf("a follower gets %v", names)
	}
	// An object that was written in the meantime is not overwritten.
	c.Apply([]sqlstore.Change{sealed("x", "n1")})
	racing := &racer{keyless: keys, do: func() { c.Apply([]sqlstore.Change{l.write("a", "x", pod("x", "n9", ""))}) }}
	if n := c.Reopen(t.Context(), racing); n != 0 || !strings.Contains(string(c.Get("pods", "a", "x").JSON()), "n9") {
		t.Errorf("%d were opened, x is %s", n, c.Get("pods", "a", "x").JSON())
	}
}

// racer does something while it opens.
type racer struct {
	*keyless
	do func()
}

func (r *racer) Open(ctx context.Context, key sqlstore.Key, stored []byte) ([]byte, error) {
	r.do()
	return r.keyless.Open(ctx, key, stored)
}
