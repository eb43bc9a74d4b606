package endpoints_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/aggregator/endpoints"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

func TestOf(t *testing.T) {
	c := cache.NewWith(kinds.NewCatalogue(builtin.Resources()), cache.Config{})
	x := endpoints.New(c)
	last, live := int64(0), map[string]sqlstore.Row{}
	put := func(namespace, name, service string) { // no service: it is deleted
		last++
		row := sqlstore.Row{Key: sqlstore.Key{Resource: endpoints.Storage, Namespace: namespace, Name: name}, Revision: last, Deleted: service == ""}
		row.Value = fmt.Appendf(nil, `{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":%q,"namespace":%q,"labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4","endpoints":[]}`,
			name, namespace, strings.TrimPrefix(service, "-"))
		change := sqlstore.Change{Row: row}
		if old, ok := live[namespace+"/"+name]; ok {
			change.PrevRevision, change.PrevValue = old.Revision, old.Value
		}
		live[namespace+"/"+name] = row
		if row.Deleted {
			delete(live, namespace+"/"+name)
		}
		c.Apply([]sqlstore.Change{change})
	}
	names := func(namespace, service string) string {
		var list []string
		if found := x.Of(namespace, service); found != nil {
			for _, item := range found.Items {
				list = append(list, item.Name)
			}
		}
		return strings.Join(list, " ")
	}
	is := func(namespace, service, want string) {
		t.Helper()
		if got := names(namespace, service); got != want {
			t.Errorf("%s/%s has %q, want %q", namespace, service, got, want)
		}
	}
	put("a", "z", "one")
	is("a", "one", "z")
	put("a", "b", "one")
	put("a", "m", "one")
	put("a", "c", "two")
	put("b", "d", "one")
	put("a", "e", "-") // of no Service
	is("a", "one", "b m z")
	is("a", "two", "c")
	is("b", "one", "d")
	is("a", "", "")
	before := x.Of("a", "one")
	put("a", "c", "two")
	if x.Of("a", "one") != before {
		t.Error("a change of another Service made it new")
	}
	put("a", "m", "one")
	if after := x.Of("a", "one"); after == before || len(before.Items) != 3 || after.Items[1] == before.Items[1] {
		t.Error("a change does not show, or what was handed out changed")
	}
	put("a", "m", "two")
	is("a", "one", "b z")
	is("a", "two", "c m")
	put("a", "b", "-")
	put("a", "z", "")
	is("a", "one", "")
	if x.Of("a", "one") != nil {
		t.Error("there are slices, and none among them")
	}
	put("b", "d", "")
	is("b", "one", "")
}

// TestManySlicesOfOneService: the cost of many slices of a Service grows linearly with their number,
// not with its square.
func TestManySlicesOfOneService(t *testing.T) {
	const many, most = 5000, 40 << 20 // the square were 100 MB
	c := cache.NewWith(kinds.NewCatalogue(builtin.Resources()), cache.Config{})
	x := endpoints.New(c)
	changes := make([]sqlstore.Change, many)
	for i := range changes {
		name := fmt.Sprintf("s%06d", many-i)
		changes[i].Row = sqlstore.Row{Key: sqlstore.Key{Resource: endpoints.Storage, Namespace: "a", Name: name}, Revision: int64(i + 1)}
		changes[i].Value = fmt.Appendf(nil, `{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":%q,"namespace":"a","labels":{"kubernetes.io/service-name":"one"}},"addressType":"IPv4","endpoints":[]}`, name)
	}
	c.Apply(changes)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := x.Of("a", "one")
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; len(found.Items) != many || found.Items[0].Name != "s000001" || got > most {
		t.Errorf("%d slices took %d bytes", len(found.Items), got)
	}
}
