package discovery_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// BenchmarkChanges asks for all groups and for one in turn, and each time one definition has changed. From 1000 on
// requests do not wait for that.
func BenchmarkChanges(b *testing.B) {
	for _, n := range []int{250, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := func(changed int) []*kinds.Resource {
				all := builtin.Resources()
				for i := range n {
					for _, v := range []string{"v1", "v1beta1", "v1alpha1"} {
						all = append(all, custom(i, v, i == changed))
					}
				}
				return all
			}
			catalogue := kinds.NewCatalogue(set(-1))
			h := newHandler(b, catalogue, func(c *discovery.Config) { c.Compress = true })
			get(h, "GET", "/apis", aggregatedV2, "Accept-Encoding", "gzip")
			sets := [2][]*kinds.Resource{set(0), set(n / 2)}
			b.ReportAllocs()
			b.Run("set", func(b *testing.B) {
				began := used()
				for i := 0; b.Loop(); i++ {
					catalogue.Set(sets[i%2])
				}
				b.ReportMetric(float64(used()-began)/float64(b.N), "cpu-ns/op")
			})
			b.Run("ask", func(b *testing.B) {
				var took int64
				for i := 0; b.Loop(); i++ {
					b.StopTimer()
					catalogue.Set(sets[i%2])
					b.StartTimer()
					began := used()
					get(h, "GET", []string{"/apis", "/apis/apps/v1"}[i%2], []string{aggregatedV2, ""}[i%2], "Accept-Encoding", "gzip")
					took += used() - began
				}
				b.ReportMetric(float64(took)/float64(b.N), "cpu-ns/op")
			})
		})
	}
}

// used returns the processor time of this process so far.
func used() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

var customs = map[string]*kinds.Resource{}

func custom(i int, version string, changed bool) *kinds.Resource {
	name := fmt.Sprint(i, version, changed)
	if customs[name] == nil {
		r := &kinds.Resource{
			Group: fmt.Sprintf("g%d.operators.example.com", i%200), Version: version, Plural: fmt.Sprintf("parcels%d", i), Singular: fmt.Sprintf("parcel%d", i), Kind: fmt.Sprintf("Parcel%d", i), ListKind: fmt.Sprintf("Parcel%dList", i),
			Namespaced: true, Schema: kinds.AsStored{}, Verbs: []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}, Categories: []string{"all"},
			Storage:      &kinds.Storage{Key: fmt.Sprintf("parcels%d.g%d.operators.example.com", i, i%200), GVK: gvk(fmt.Sprintf("g%d.operators.example.com", i%200), "v1", fmt.Sprintf("Parcel%d", i))},
			Subresources: []kinds.Subresource{{Name: "status", Kind: fmt.Sprintf("Parcel%d", i), Verbs: []string{"get", "patch", "update"}}},
		}
		if changed {
			r.Categories = nil
		}
		customs[name] = r
	}
	return customs[name]
}
