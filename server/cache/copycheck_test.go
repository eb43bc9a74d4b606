package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// losing is a store that says of rows that are not there that they are gone, as a real one does.
type losing struct {
	*vouching
	reads int
	after func() // is called once rows were read
}

func (l *losing) ReadRows(ctx context.Context, revisions []int64, take func([]sqlstore.Row) error) error {
	l.reads++
	there := map[int64]bool{}
	for _, s := range l.live {
		there[s.revision] = true
	}
	for _, r := range revisions {
		if !there[r] {
			return fmt.Errorf("reading: %w", &sqlstore.CompactedError{Revision: r, Floor: r})
		}
	}
	err := l.vouching.ReadRows(ctx, revisions, take)
	if l.after != nil {
		l.after()
	}
	return err
}

func check(t *testing.T, c *cache.Cache, from sqlstore.Copier, revision int64) cache.Checked {
	t.Helper()
	done, err := c.CheckCopy(t.Context(), from, revision, 1)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func podKey(i int) sqlstore.Key {
	return sqlstore.Key{Resource: "pods", Namespace: fmt.Sprintf("ns%d", i%7), Name: fmt.Sprintf("p%d", i)}
}

func TestCheckCopyMendsWhatLeftNoTrace(t *testing.T) {
	const n = 1200
	v, path := copied(t, n)
	c, loaded := loadedFrom(t, v, path)
	live := len(v.live)
	if done := check(t, c, &losing{vouching: v}, loaded.Revision); len(done.Wrong) > 0 || done.Others > 0 || done.Objects != live-1 { // but the server's own
		t.Fatalf("of a copy that is right: %+v of %d", done, live)
	}
	var hand []sqlstore.Key
	for i := 0; i < n; i += 40 {
		key := podKey(i)
		s := v.live[key]
		s.value = strings.ReplaceAll(s.value, `"app":"`, `"app":"by-hand-`)
		v.live[key] = s
		hand = append(hand, key)
	}
	done := check(t, c, &losing{vouching: v}, loaded.Revision)
	if len(done.Wrong)+done.Others != len(hand) || done.Objects != live-1-len(hand) || done.Others == 0 {
		t.Fatalf("%+v, want %d wrong", done, len(hand))
	}
	for _, key := range done.Wrong {
		if !slices.Contains(hand, key) {
			t.Errorf("%v is as its row was", key)
		}
	}
	for _, key := range hand {
		if it := c.Get("pods", key.Namespace, key.Name); !strings.Contains(string(it.JSON()), "by-hand") {
			t.Fatalf("%v at %d is not its row", key, it.Revision)
		}
	}
	whole := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
	if _, err := whole.Load(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(everything(t, c), everything(t, whole)) {
		t.Error("what was mended is not what a load of everything gives")
	}
	for _, app := range []string{"app=a3", "app=by-hand-a3", "app=by-hand-a0"} { // by the index too
		f := cache.NewFilter(selector(t, app), nil)
		if a, b := names(c.Snapshot("pods"), f, "", "", ""), names(whole.Snapshot("pods"), f, "", "", ""); !slices.Equal(a, b) {
			t.Errorf("%s: %v, want %v", app, a, b)
		}
	}
	if done := check(t, c, &losing{vouching: v}, loaded.Revision); len(done.Wrong) > 0 {
		t.Errorf("once it was mended: %+v", done)
	}
}

func TestCheckCopyMeetsDamage(t *testing.T) {
	v, path := copied(t, 600)
	c, loaded := loadedFrom(t, v, path)
	key := podKey(21)
	s := v.live[key]
	s.value = `{"kind":"Pod`
	v.live[key] = s
	bad := len(c.Corrupt())
	done := check(t, c, v, loaded.Revision)
	if len(done.Wrong) != 1 || done.Wrong[0] != key || len(c.Corrupt()) != bad+1 {
		t.Fatalf("%+v, and %d objects cannot be read, want %d", done, len(c.Corrupt()), bad+1)
	}
}

// What is written while objects are held to their rows is left alone, also where the old row is gone by then.
func TestCheckCopyBesideWriters(t *testing.T) {
	v, path := copied(t, 1200)
	c, loaded := loadedFrom(t, v, path)
	write := func(i int, value string) {
		key := podKey(i)
		c.Apply([]sqlstore.Change{v.write(key.Namespace, key.Name, value)})
	}
	write(3, largePod("p3", 4000))
	l := &losing{vouching: v}
	next := 10
	l.after = func() {
		for range 20 { // some of the piece that was just read, and of those to come
			write(next, largePod(podKey(next).Name, 5000+next))
			next += 3
		}
	}
	done := check(t, c, l, loaded.Revision)
	if len(done.Wrong) > 0 || l.reads < 3 {
		t.Fatalf("%+v in %d reads", done, l.reads)
	}
	whole := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
	if _, err := whole.Load(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(everything(t, c), everything(t, whole)) {
		t.Error("what was written meanwhile is not what a load of everything gives")
	}
	// A row that is gone though its object is live is passed over: it has no say.
	key := podKey(5)
	delete(v.live, key)
	l.after = nil
	if done := check(t, c, l, loaded.Revision); len(done.Wrong) > 0 {
		t.Fatalf("%+v", done)
	}
}

func TestCheckCopyEnds(t *testing.T) {
	v, path := copied(t, 1200)
	c, loaded := loadedFrom(t, v, path)
	ctx, cancel := context.WithCancel(t.Context())
	l := &losing{vouching: v, after: cancel}
	if _, err := c.CheckCopy(ctx, l, loaded.Revision, 0.001); !errors.Is(err, context.Canceled) || l.reads != 1 {
		t.Errorf("%v after %d reads", err, l.reads)
	}
}
