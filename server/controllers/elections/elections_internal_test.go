package elections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// calls records writes, which take a millisecond each.
type calls struct {
	mu   sync.Mutex
	list []string
	fail error
}

func (c *calls) Call(_ context.Context, _, method, path, _ string, body, _ any) error {
	time.Sleep(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, method+" "+path[strings.LastIndex(path, "namespaces/")+11:]+" "+asText(body))
	return c.fail
}

// take returns the writes, and forgets them.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

// ballot is a cache of LeaseCandidates, and elections that run.
type ballot struct {
	*calls
	cache *cache.Cache
	last  int64
}

func newBallot() *ballot {
	return &ballot{calls: &calls{}, cache: cache.New(kinds.NewCatalogue(builtin.Resources()))}
}

// put writes a candidate that was made and renewed so long ago.
func (b *ballot) put(namespace, name, lease string, made, renewed time.Duration, metadata ...string) {
	b.last++
	at := func(ago time.Duration) string {
		return time.Now().Add(-ago).UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	value := fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1alpha2","kind":"LeaseCandidate","metadata":{"name":%q,"namespace":%q,"creationTimestamp":%q%s},"spec":{"leaseName":%q,"binaryVersion":"1.32.0","emulationVersion":"1.32.0","strategy":"OldestEmulationVersion","renewTime":%q}}`,
		name, namespace, at(made)[:19]+"Z", strings.Join(metadata, ""), lease, at(renewed))
	b.cache.Apply([]sqlstore.Change{{Row: sqlstore.Row{Key: sqlstore.Key{Resource: CandidatesStorage, Namespace: namespace, Name: name}, Revision: b.last, Value: []byte(value)}}})
}

func (b *ballot) drop(namespace, name string) {
	b.last++
	b.cache.Apply([]sqlstore.Change{{Row: sqlstore.Row{Key: sqlstore.Key{Resource: CandidatesStorage, Namespace: namespace, Name: name}, Revision: b.last, Deleted: true}}})
}

// during runs the elections while something is done.
func (b *ballot) during(t *testing.T, do func()) {
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	e := &Controller{Base: reconcile.Base{API: b.calls, Cache: b.cache, Log: controllertest.DiscardLog}, Served: "coordination.k8s.io/v1alpha2"}
	running.Go(func() { _ = e.Run(ctx) })
	synctest.Wait()
	do()
	end()
	running.Wait()
}

// Candidates that renewed themselves too long ago go, at the start and every half hour, but
// for those that were made not long ago.
func TestExpiredCandidatesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot()
		b.put("a", "fresh", "l", time.Hour, time.Minute)
		b.put("a", "old", "l", time.Hour, 31*time.Minute)
		b.put("a", "new", "l", time.Minute, 31*time.Minute)
		deleted := func() (list []string) {
			for _, call := range b.take() {
				if strings.HasPrefix(call, "DELETE") {
					list = append(list, strings.Fields(call)[1])
				}
			}
			slices.Sort(list)
			return list
		}
		b.during(t, func() {
			time.Sleep(time.Second)
			if got := deleted(); !slices.Equal(got, []string{"a/leasecandidates/old"}) {
				t.Errorf("%v go at the start", got)
			}
			b.drop("a", "old")
			time.Sleep(29 * time.Minute)
			if got := deleted(); len(got) > 0 {
				t.Errorf("%v go before it is time", got)
			}
			time.Sleep(2 * time.Minute)
			if got := deleted(); !slices.Equal(got, []string{"a/leasecandidates/fresh", "a/leasecandidates/new"}) {
				t.Errorf("%v go after half an hour", got)
			}
		})
	})
}

// Expired candidates that cannot go, or wait for their finalizers, are not tried again before
// it is time, however many they are.
func TestExpiredCandidatesThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot()
		b.fail = errors.New("no")
		for i := range 2 * removedAtOnce {
			b.put("a", fmt.Sprint("old", i), "l", time.Hour, time.Hour)
			b.put("a", fmt.Sprint("going", i), "l", time.Hour, time.Hour, `,"finalizers":["example.com/f"],"deletionTimestamp":"2000-01-01T00:00:00Z"`)
		}
		b.during(t, func() {
			time.Sleep(29 * time.Minute)
			list := b.take()
			if len(list) != removedAtOnce || slices.ContainsFunc(list, func(call string) bool { return strings.Contains(call, "going") }) {
				t.Errorf("%d calls in half an hour: %.3q", len(list), list)
			}
		})
	})
}

// A Lease that there cannot be is not tried to be made.
func TestLeaseThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot()
		b.put("a", "one", "No Lease", time.Hour, time.Second)
		b.during(t, func() {
			time.Sleep(time.Minute)
			if list := b.take(); len(list) > 0 {
				t.Errorf("%q", list)
			}
		})
	})
}

// Many candidates of one Lease are pinged some at a time, and an election elsewhere is held
// between them.
func TestElectionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot()
		for i := range 3 * pingsAtOnce {
			b.put("crowd", fmt.Sprint("c", i), "l", time.Hour, time.Minute)
		}
		b.put("other", "one", "l", time.Hour, time.Second)
		b.during(t, func() {
			time.Sleep(time.Second)
			list := b.take()
			i := slices.IndexFunc(list, func(call string) bool { return strings.HasPrefix(call, "POST other/leases") })
			if i < 0 || i > pingsAtOnce {
				t.Errorf("the election of another namespace comes after %d questions", i)
			}
			if len(list) < 3*pingsAtOnce {
				t.Errorf("%d calls", len(list))
			}
		})
	})
}

// TestElectionsAreTriedAgain: a failed write is retried, not more often than the pause allows.
func TestElectionsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot()
		b.fail = errors.New("try again")
		b.put("a", "one", "l", time.Hour, time.Second)
		b.during(t, func() {
			time.Sleep(3500 * time.Millisecond)
			if n := len(b.take()); n < 3 || n > 4 {
				t.Errorf("%d tries in three and a half seconds", n)
			}
		})
	})
}

// asText returns a body as text.
func asText(body any) string {
	data, _ := json.Marshal(body)
	return string(data)
}
