package cache_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/sqlstore"
)

// bigPod returns an object of about 5 KB.
func bigPod(name, node, labels string) string {
	spec := strings.Repeat(`{"name":"main","image":"registry.example/app:1.2.3","resources":{"limits":{"cpu":"100m"}}},`, 45)
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"uid":"u-%s","creationTimestamp":"2026-01-01T00:00:00Z","labels":{%s}},`+
		`"spec":{"containers":[%s{}],"nodeName":%q},"status":{"phase":"Running"}}`, name, name, labels, spec, node)
}

// full returns a cache of n pods on 100 nodes; one in fifty has tier=db.
func full(n int) (*cache.Cache, *log) {
	c, l := cache.New(podCatalogue()), newLog()
	for i := range n {
		tier := "web"
		if i%50 == 0 {
			tier = "db"
		}
		name := fmt.Sprintf("p%06d", i)
		c.Apply([]sqlstore.Change{l.write("default", name, bigPod(name, fmt.Sprint("n", i%100), fmt.Sprintf(`"app":"a%d","tier":%q`, i%10, tier)))})
	}
	return c, l
}

func BenchmarkGet(b *testing.B) {
	c, _ := full(5000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if c.Get("pods", "default", fmt.Sprintf("p%06d", i%5000)) == nil {
			b.Fatal("not found")
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	c, _ := full(5000)
	for name, f := range map[string]*cache.Filter{
		"all":       nil,
		"node":      cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: "n7"}}),
		"label":     cache.NewFilter(selector(b, "tier=db"), nil),
		"unindexed": cache.NewFilter(selector(b, "tier!=db"), nil),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = 0
				c.Snapshot("pods").Select(f, "", cache.Position{}, func(*cache.Item) bool { n++; return true })
			}
			b.ReportMetric(float64(n), "items")
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, labeled := range []bool{false, true} {
		b.Run(fmt.Sprintf("labels-indexed-%v", labeled), func(b *testing.B) {
			c, l := full(5000)
			if labeled {
				c.Snapshot("pods").Select(cache.NewFilter(selector(b, "tier=db"), nil), "", cache.Position{}, func(*cache.Item) bool { return true })
			}
			value := bigPod("p000077", "n77", `"app":"a7","tier":"web"`)
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				ch := l.write("default", "p000077", value)
				ch.Aux = &cache.Pending{}
				l.changes = l.changes[:0]
				c.Apply([]sqlstore.Change{ch})
			}
		})
	}
}

// BenchmarkApplyGroup measures how long the cache takes for a new object of a group that was committed
// together, without watchers.
func BenchmarkApplyGroup(b *testing.B) {
	for _, rows := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			c, l := full(5000)
			value := bigPod("p", "n77", `"app":"a7","tier":"web"`)
			b.ReportAllocs()
			for n := 0; n < b.N; {
				b.StopTimer()
				l.changes = l.changes[:0]
				var group []sqlstore.Change
				for ; len(group) < rows && n < b.N; n++ {
					ch := l.write("default", fmt.Sprintf("new-%d", n*7919%1_000_003), value)
					ch.Aux = &cache.Pending{}
					group = append(group, ch)
				}
				b.StartTimer()
				c.Apply(group)
			}
		})
	}
}

// BenchmarkDispatch is one event to 1,000 watchers: all want it, or each watches a
// node of its own.
func BenchmarkDispatch(b *testing.B) {
	for _, byNode := range []bool{false, true} {
		name := "everyone"
		if byNode {
			name = "one-of-1000-nodes"
		}
		b.Run(name, func(b *testing.B) {
			c, l := full(100)
			var watchers []*cache.Watcher
			for i := range 1000 {
				scope := cache.Scope{}
				if byNode {
					scope.Filter = cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: fmt.Sprint("n", i)}})
				}
				w, _ := c.WatchNow("pods", scope)
				defer w.Stop()
				watchers = append(watchers, w)
			}
			value := bigPod("p000007", "n7", `"app":"a7"`)
			buffers := make([][]cache.Delivery, len(watchers))
			b.ReportAllocs()
			for b.Loop() {
				ch := l.write("default", "p000007", value)
				ch.Aux = &cache.Pending{}
				l.changes = l.changes[:0]
				c.Apply([]sqlstore.Change{ch})
				for i, w := range watchers {
					select {
					case <-w.Ready():
						buffers[i], _, _ = w.Take(b.Context(), buffers[i])
						for _, d := range buffers[i] {
							_, _ = d.Frame("json", func(_ cache.EventType, it *cache.Item) ([]byte, error) { return it.JSON(), nil })
						}
					default:
					}
				}
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	value := []byte(within("default", bigPod("p", "n7", `"app":"a7","tier":"web"`)))
	pods := podCatalogue().ByStorage("pods")
	b.Run("meta", func(b *testing.B) {
		b.SetBytes(int64(len(value)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := metadata.Scan(value, pods.Storage); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("item", func(b *testing.B) {
		b.SetBytes(int64(len(value)))
		b.ReportAllocs()
		row := &sqlstore.Row{Key: sqlstore.Key{Resource: "pods", Namespace: "default", Name: "p"}, Revision: 5, Value: value}
		for b.Loop() {
			if it := cache.NewItem(own, row, pods); it.Err() != nil {
				b.Fatal(it.Err())
			}
		}
	})
}
