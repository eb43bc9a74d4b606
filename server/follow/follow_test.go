package follow_test

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// store applies writes of ConfigMaps and Secrets to a cache, as the log of a store does.
type store struct {
	cache *cache.Cache
	last  int64
	live  map[sqlstore.Key]sqlstore.Row
}

func newStore() *store {
	return &store{cache: cache.NewWith(kinds.NewCatalogue(builtin.Resources()), cache.Config{RingEvents: 100}), live: map[sqlstore.Key]sqlstore.Row{}}
}

// change returns the next write of an object with a value in its data; "" deletes it.
func (s *store) change(storage, name, value string) sqlstore.Change {
	s.last++
	kind := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}[storage]
	key := sqlstore.Key{Resource: storage, Namespace: "a", Name: name}
	old, was := s.live[key]
	row := sqlstore.Row{Key: key, Revision: s.last}
	switch value {
	case "":
		row.Deleted, row.Value = true, old.Value
	case "unreadable":
		row.Value = []byte(`{"data":[`)
	default:
		row.Value = fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":"a","labels":{"value":%q}}}`, kind, name, value)
	}
	c := sqlstore.Change{Row: row}
	if was {
		c.PrevRevision, c.PrevValue = old.Revision, old.Value
	}
	if s.live[key] = row; row.Deleted {
		delete(s.live, key)
	}
	return c
}

func (s *store) write(storage, name, value string) {
	s.cache.Apply([]sqlstore.Change{s.change(storage, name, value)})
}

// state is the derived state of the tests: the value of each object.
type state struct {
	*follow.Follower
	values map[string]string // by storage and name
	resets int
}

func newState(c *cache.Cache, storages ...string) *state {
	s := &state{}
	var list []follow.Kind
	for _, storage := range storages {
		list = append(list, follow.Kind{
			Storage: storage,
			Set:     func(item *cache.Item) { s.values[storage+"/"+item.Name] = item.Meta().Labels["value"] },
			Delete:  func(_, name string) { delete(s.values, storage+"/"+name) },
		})
	}
	s.Follower = follow.New(c, func() { s.values = map[string]string{}; s.resets++ }, list...)
	return s
}

func (s *state) read() map[string]string {
	s.RLock()
	defer s.RUnlock()
	return maps.Clone(s.values)
}

func (s *state) want(t *testing.T, step string, want map[string]string) {
	t.Helper()
	if got := s.read(); !maps.Equal(got, want) {
		t.Errorf("%s: the state is %v, want %v", step, got, want)
	}
}

func TestFollower(t *testing.T) {
	s := newStore()
	f := newState(s.cache, "configmaps", "secrets")
	s.write("configmaps", "old", "1")
	f.want(t, "an object that was there", map[string]string{"configmaps/old": "1"})
	s.write("configmaps", "old", "2")
	s.write("secrets", "new", "3")
	f.want(t, "a change and a new object", map[string]string{"configmaps/old": "2", "secrets/new": "3"})
	s.write("secrets", "new", "unreadable")
	f.want(t, "an object that cannot be read", map[string]string{"configmaps/old": "2"})
	s.write("secrets", "new", "4")
	s.write("configmaps", "old", "")
	f.want(t, "readable again, and a deletion", map[string]string{"secrets/new": "4"})
	if f.resets != 1 {
		t.Errorf("the objects were listed %d times", f.resets)
	}
	late := newState(s.cache, "secrets")
	s.write("secrets", "new", "unreadable")
	late.want(t, "an object that could never be read", map[string]string{})
}

// The cache ends a watch that is not read for long; the objects are listed again.
func TestFollowerThatFellBehind(t *testing.T) {
	s := newStore()
	f := newState(s.cache, "configmaps")
	s.write("configmaps", "gone", "1")
	f.want(t, "at first", map[string]string{"configmaps/gone": "1"})
	s.write("configmaps", "gone", "")
	for i := range 5_000 {
		s.write("configmaps", "b", strconv.Itoa(i))
	}
	f.want(t, "after many changes", map[string]string{"configmaps/b": "4999"})
	if f.resets != 2 {
		t.Fatalf("the objects were listed %d times: the watch was not cut off", f.resets)
	}
	s.write("configmaps", "b", "")
	f.want(t, "a change after the second list", map[string]string{})
}

// The second object is written after the first, in one batch, and the cache applies that batch to the storage
// of the second before that of the first. No reader may see the second without the first, whether the state
// follows changes or is being listed.
func TestStateIsThatOfOneRevision(t *testing.T) {
	s := newStore()
	var done atomic.Bool
	var readers sync.WaitGroup
	read := func(most int, next func() *state) {
		readers.Go(func() {
			for n := 0; n < most && !done.Load(); n++ {
				values := next().read()
				first, _ := strconv.Atoi(values["secrets/first"])
				second, _ := strconv.Atoi(values["configmaps/second"])
				if first < second {
					t.Errorf("the second object is of batch %d, the first of batch %d", second, first)
					return
				}
			}
		})
	}
	fresh := func() *state { return newState(s.cache, "secrets", "configmaps") }
	followed := fresh()
	read(math.MaxInt, func() *state { return followed })
	read(math.MaxInt, func() *state { return followed })
	read(200, fresh) // each leaves its watches to the cache
	for i := range 2_000 {
		value := strconv.Itoa(i + 1)
		first, second := s.change("secrets", "first", value), s.change("configmaps", "second", value)
		s.cache.Apply([]sqlstore.Change{first, second})
		if got := followed.read(); got["configmaps/second"] != value {
			t.Fatalf("an acknowledged write of %s is not seen: %v", value, got)
		}
	}
	done.Store(true)
	readers.Wait()
}

// A caller of CatchUp needs no lock to see earlier acknowledged writes, even if another one has just taken
// them from its watch and is still applying them.
func TestCaughtUpWithoutALock(t *testing.T) {
	s := newStore()
	var handed atomic.Int64
	kinds := make([]follow.Kind, 100) // so many that to look at all watches takes a while
	for i := range kinds {
		kinds[i] = follow.Kind{Storage: "secrets"}
	}
	kinds = append(kinds, follow.Kind{Storage: "configmaps", Set: func(item *cache.Item) {
		runtime.Gosched()
		n, _ := strconv.ParseInt(item.Meta().Labels["value"], 10, 64)
		handed.Store(n)
	}})
	f := follow.New(s.cache, func() {}, kinds...)
	var done atomic.Bool
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for !done.Load() {
				f.CatchUp()
			}
		})
	}
	for i := range 2_000 {
		s.write("configmaps", "a", strconv.Itoa(i))
		if f.CatchUp(); handed.Load() != int64(i) {
			t.Errorf("write %d is acknowledged, and %d was handed on", i, handed.Load())
			break
		}
	}
	done.Store(true)
	others.Wait()
}

// TestUnreadable: every read while an object is unreadable panics, whether the object was listed or has
// changed, and no reader gets a state without it. Once it is readable, the state is complete. Until then each
// read tries that object alone.
func TestUnreadable(t *testing.T) {
	s := newStore()
	const objects = 100
	values, bad, sets := map[string]string{}, "c50", 0
	f := follow.New(s.cache, func() { clear(values) }, follow.Kind{Storage: "configmaps", Delete: func(_, name string) { delete(values, name) }, Set: func(item *cache.Item) {
		sets++
		if item.Name == bad {
			panic(&cache.Unreadable{})
		}
		values[item.Name] = item.Meta().Labels["value"]
	}})
	all := map[string]string{}
	write := func(name, value string) {
		s.write("configmaps", name, value)
		if all[name] = value; value == "" {
			delete(all, name)
		}
	}
	fails := func() {
		t.Helper()
		for range 20 {
			if err := cache.Try(f.CatchUp); err == nil {
				t.Errorf("%q can be read", bad)
			}
		}
	}
	complete := func() {
		t.Helper()
		bad = ""
		if err := cache.Try(f.CatchUp); err != nil || !maps.Equal(values, all) {
			t.Errorf("%v: the state is %v, want %v", err, values, all)
		}
	}
	for i := range objects {
		write(fmt.Sprint("c", i), "1")
	}
	fails()
	complete()
	if sets > 2*objects {
		t.Errorf("an object that is listed cannot be read: %d tries of %d objects", sets, objects)
	}
	bad, sets = "c7", 0
	write("c7", "2")
	fails()
	write("c7", "3")
	write("c8", "3")
	write("c9", "3")
	write("c9", "")
	fails()
	complete()
	if sets > 60 {
		t.Errorf("an object that has changed cannot be read: %d tries", sets)
	}
	bad = "c7"
	write("c7", "4")
	fails()
	write("c7", "") // it need not be read any more
	if err := cache.Try(f.CatchUp); err != nil || !maps.Equal(values, all) {
		t.Errorf("%v: the state is %v, want %v", err, values, all)
	}
	bad = "c10"
	write("c10", "5")
	fails()
	for i := range 5_000 { // the cache cuts the watch off
		s.write("configmaps", "c11", strconv.Itoa(i))
	}
	all["c11"] = "4999"
	fails()
	complete()
	if n := s.cache.Watchers("configmaps"); n != 1 {
		t.Errorf("%d watchers", n)
	}
}

// TestNobodyReadsAPart: a reader that waits for the state while an object of a batch turns out to be unreadable
// does not get the rest of the batch.
func TestNobodyReadsAPart(t *testing.T) {
	s := newStore()
	var first, second string
	var bad atomic.Bool
	f := follow.New(s.cache, func() {}, follow.Kind{Storage: "secrets", Delete: func(string, string) {}, Set: func(item *cache.Item) {
		first = item.Meta().Labels["value"]
		runtime.Gosched()
	}}, follow.Kind{Storage: "configmaps", Delete: func(string, string) {}, Set: func(item *cache.Item) {
		if bad.Load() {
			panic(&cache.Unreadable{})
		}
		second = item.Meta().Labels["value"]
	}})
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for !done.Load() {
				_ = cache.Try(func() {
					f.RLock()
					defer f.RUnlock()
					if first != second && !done.Swap(true) {
						t.Errorf("a reader got %q and %q", first, second)
					}
				})
			}
		})
	}
	for i := 0; i < 500 && !done.Load(); i++ {
		bad.Store(true)
		value := strconv.Itoa(i)
		s.cache.Apply([]sqlstore.Change{s.change("secrets", "first", value), s.change("configmaps", "second", value)})
		_ = cache.Try(f.CatchUp)
		bad.Store(false)
		f.CatchUp()
	}
	done.Store(true)
	readers.Wait()
}
