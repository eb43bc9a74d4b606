package definitions

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/sqlstore"
)

// accepting is an API that accepts all writes.
type accepting struct{}

func (accepting) Call(_ context.Context, _, _, where, _ string, _, into any) error {
	if written, ok := into.(*metav1.PartialObjectMetadata); ok {
		written.Name = path.Base(strings.TrimSuffix(where, "/status"))
	}
	return nil
}

// TestManyConflicts: the work for the definitions of a group grows with their number alone, even if all of them request the names
// of the first. It is counted in allocated bytes: those of twice as many definitions are less than three times as many.
func TestManyConflicts(t *testing.T) {
	work := func(n int) uint64 {
		d := &Controller{Base: reconcile.Base{API: accepting{}, Cache: cache.New(nil), Log: controllertest.DiscardLog}, known: map[string]*definition{}, groups: map[string]map[string]*definition{}}
		d.write, d.services = writer{d.Base}, services{Base: d.Base}
		for i := range n {
			name := fmt.Sprintf("lamps%05d.example.com", i)
			value := fmt.Sprintf(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":%q},`+
				`"spec":{"group":"example.com","names":{"plural":"lamps%05d","singular":"lamp","kind":"Lamp","listKind":"LampList","shortNames":["lp"]}}}`, name, i)
			row := &sqlstore.Row{Key: sqlstore.Key{Resource: Storage, Name: name}, Value: []byte(value), Created: int64(i + 1)}
			d.take(cache.NewOwnItem(row, nil))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 2 { // the second time nothing is written
			if _, err := d.reconcile(t.Context(), "example.com"); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		for i, one := range d.of("example.com") {
			want := good
			if i > 0 {
				want = `False ListKindConflict: "LampList" is already in use` + waiting
			}
			if got := conditionsText(one); got != want {
				t.Fatalf("%s: %s, want %s", one.crd.Name, got, want)
			}
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	work(10)
	if some, twice := work(300), work(600); twice > 3*some {
		t.Errorf("%d bytes for 300 definitions, %d for 600", some, twice)
	}
}

// TestServicesOfDefinitions: versions of definitions have an APIService, other versions of any group have none, as soon as one
// appears that is marked as following definitions.
func TestServicesOfDefinitions(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		services := func(when string, want ...string) {
			t.Helper()
			controllertest.Advance(0)
			for _, name := range []string{"v1.example.com", "v2.example.com", "v1.other.com", "v1.mine.com"} {
				there, wanted := w.Read(servicesStorage, "", name) != "", strings.Contains(" "+strings.Join(want, " ")+" ", " "+name+" ")
				if there != wanted {
					t.Errorf("%s: %s exists: %t", when, name, there)
				}
			}
		}
		definition := func(plural string, versions ...string) {
			var list []string
			for _, v := range versions {
				list = append(list, fmt.Sprintf(`{"name":%q,"served":true,"storage":%t}`, v, len(list) == 0))
			}
			w.Set(Storage, "", plural+".example.com", fmt.Sprintf(`{"spec":{"group":"example.com","scope":"Cluster","names":{"plural":%q,"singular":%[1]q,"kind":%[1]q,"listKind":"%[1]sList"},"versions":[%s]}}`,
				plural, strings.Join(list, ",")))
		}
		const managed = `{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":"true"}},"spec":{"group":%q,"version":"v1"}}`
		w.Set(servicesStorage, "", "v1.mine.com", `{"spec":{"group":"mine.com","version":"v1"}}`)
		services("one without the mark", "v1.mine.com")
		definition("lamps", "v1", "v2")
		definition("bulbs", "v1")
		services("two definitions", "v1.mine.com", "v1.example.com", "v2.example.com")
		w.Set(servicesStorage, "", "v2.example.com", "")
		services("one is restored", "v1.mine.com", "v1.example.com", "v2.example.com")
		definition("lamps", "v1")
		services("a version goes", "v1.mine.com", "v1.example.com")
		w.Set(servicesStorage, "", "v1.other.com", fmt.Sprintf(managed, "other.com"))
		services("one of no definition", "v1.mine.com", "v1.example.com")
		w.Set(Storage, "", "lamps.example.com", "")
		services("a definition goes", "v1.mine.com", "v1.example.com")
		w.Set(Storage, "", "bulbs.example.com", "")
		services("the last definition goes", "v1.mine.com")
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&Controller{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}}).Run
	})
}
