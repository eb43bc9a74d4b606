package cache

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// fewSteps are between two pauses, so that few objects are enough.
const fewSteps = 500

// roomy returns a cache of n pods of two resources, of so many bytes each, where so many fit as they are.
func roomy(n, size int, plain int64) *Cache {
	var all []*kinds.Resource
	for _, key := range []string{"pods", "others"} {
		all = append(all, &kinds.Resource{
			Version: "v1", Plural: key, Kind: "Pod", Namespaced: true, New: func() kinds.Object { return &corev1.Pod{} },
			Storage: &kinds.Storage{Key: key, GVK: corev1.SchemeGroupVersion.WithKind("Pod")},
		})
	}
	c := NewWith(kinds.NewCatalogue(all), Config{PlainBytes: plain, RingEvents: 10})
	var group []sqlstore.Change
	for i := range n {
		key := sqlstore.Key{Resource: all[i%2].Storage.Key, Namespace: "a", Name: fmt.Sprint("p", i)}
		value := fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":"u%d"},"spec":{"nodeName":"n%d"},"status":{"message":%q}}`,
			key.Name, i, i%9, strings.Repeat("x of all ", size/9))
		group = append(group, sqlstore.Change{Row: sqlstore.Row{Key: key, Revision: int64(i + 1), Created: int64(i + 1), Value: value}})
	}
	c.Apply(group)
	return c
}

// TestPackRestsWhileItLooks: a round over objects of several resources pauses each time that it has looked at so many.
func TestPackRestsWhileItLooks(t *testing.T) {
	const n = 3*fewSteps + 99
	c := roomy(n, 9, 1<<30)
	rests := 0
	throttle := &packing.Throttle{Ctx: t.Context(), Every: fewSteps, Urgent: c.plain.RoundUrgent, Pause: func(_ context.Context, hurry bool) {
		if rests++; hurry {
			t.Error("a round that finds nothing to do cannot wait")
		}
	}}
	c.pack(throttle)
	if rests != n/fewSteps || throttle.Steps != n%fewSteps {
		t.Errorf("%d rests, and %d steps behind the last, of %d", rests, throttle.Steps, n)
	}
}

// TestPackRestsWhileItPacks: between two pauses it packs no more than a few steps' worth, and in the end it has packed the
// same as a round without pauses.
func TestPackRestsWhileItPacks(t *testing.T) {
	const n, size = 1200, 2000
	made := func(every int, rest func(c *Cache)) *Cache {
		c := roomy(n, size, 1<<20)
		for range 3 {
			c.pack(&packing.Throttle{Ctx: t.Context(), Every: every, Urgent: func() bool { return false }, Pause: func(context.Context, bool) { rest(c) }})
		}
		return c
	}
	before, most := 0, 0
	c := made(fewSteps, func(c *Cache) {
		now, _, _ := c.Packed()
		before, most = now, max(most, now-before)
	})
	if limit := fewSteps/(packing.StepsEach+size/packing.StepBytes) + 1; most == 0 || most > limit {
		t.Errorf("%d objects were packed between two rests, want at most %d", most, limit)
	}
	other := made(math.MaxInt, func(*Cache) { t.Error("it rests") })
	for _, key := range []string{"pods", "others"} {
		c.Snapshot(key).Ascend("", "", "", func(it *Item) bool {
			a, b := it.body.Load(), other.Snapshot(key).Get(it.Namespace, it.Name).body.Load()
			if a.packed() != b.packed() || !bytes.Equal(contents(a), contents(b)) {
				t.Errorf("%s %s is packed: %v; without rests: %v", key, it.Name, a.packed(), b.packed())
			}
			return !t.Failed()
		})
	}
}

// contents returns the bytes of a body in memory.
func contents(b *body) []byte {
	if b.packed() {
		return append(bytes.Clone(b.meta()), b.value()...)
	}
	return b.plain()
}

// TestPackEndsWhileItRests: a round whose time has come packs nothing more, and reports what it has packed.
func TestPackEndsWhileItRests(t *testing.T) {
	const size = 2000
	c := roomy(1200, size, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	c.pack(&packing.Throttle{Ctx: ctx, Every: fewSteps, Urgent: c.plain.RoundUrgent, Pause: func(context.Context, bool) {
		if n, _, _ := c.Packed(); n > 0 {
			cancel()
		}
	}})
	n, _, _ := c.Packed()
	if n == 0 || n > fewSteps/(packing.StepsEach+size/packing.StepBytes)+1 {
		t.Fatalf("%d objects are packed", n)
	}
	c.Pack(t.Context())
	if now, _, _ := c.Packed(); now < 1100 {
		t.Errorf("%d objects are packed after another round", now)
	}
}

// TestPackInAHurry: where twice as much is plain as may be, a round lets others run, and pauses no time.
func TestPackInAHurry(t *testing.T) {
	c := roomy(1200, 2000, 1<<20)
	hurried := 0
	throttle := packing.NewThrottle(t.Context(), c.plain.RoundUrgent)
	throttle.Pause = func(ctx context.Context, hurry bool) {
		if packing.Pause(ctx, hurry); hurry {
			hurried++
		}
	}
	c.pack(throttle)
	if hurried == 0 || c.plain.RoundUrgent() {
		t.Errorf("%d rests were cut short; there is too much still: %v", hurried, c.plain.RoundUrgent())
	}
}
