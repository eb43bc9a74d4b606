package objects

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// box is a store with two services in each of two namespaces, and their endpoints.
type box struct {
	*Store
	t        *testing.T
	open     *sqlstore.Store
	cache    *cache.Cache
	services *kinds.Resource
}

func newBox(t *testing.T) *box {
	t.Helper()
	catalogue := kinds.NewCatalogue(builtin.Resources())
	store := sqlstore.New(storetest.NewShared().Open(), sqlstore.Config{})
	c := cache.New(catalogue)
	ctx, cancel := context.WithCancel(context.Background())
	from, err := c.Load(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- store.Run(ctx, from, c) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	b := &box{Store: New(catalogue, store, c), t: t, open: store, cache: c, services: catalogue.Lookup("", "v1", "services")}
	for _, at := range []string{"a/x", "a/y", "b/x", "b/y"} {
		ns, name, _ := strings.Cut(at, "/")
		for resource, kind := range map[string]string{"services": "Service", "endpoints": "Endpoints"} {
			value := fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u"}}`, kind, name, ns)
			if _, err := store.Write(ctx, sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: resource, Namespace: ns, Name: name}, Value: []byte(value)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b
}

func (b *box) permit(verb, sub, namespace, name string) permits.Permit {
	b.t.Helper()
	p, _, err := permits.Authorize(b.t.Context(), authx.AlwaysAllow{}, &authx.Attributes{
		User: &authx.Identity{}, ResourceRequest: true, Verb: verb, Resource: "services", Subresource: sub, Namespace: namespace, Name: name,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *box) at(namespace, name string) Place {
	return Place{Resource: b.services, Namespace: namespace, Name: name}
}

func (b *box) op(verb sqlstore.Verb, namespace, name string) sqlstore.Op {
	op := sqlstore.Op{Verb: verb, Key: sqlstore.Key{Resource: "services", Namespace: namespace, Name: name}, Value: fmt.Appendf(nil, `{"kind":"Service","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u","labels":{"written":"again"}}}`, name, namespace)}
	if item := b.cache.Get("services", namespace, name); item != nil {
		op.Expect = item.Revision
	}
	return op
}

// doors returns all ways in. Each is tried for x in a, or for all of a.
func (b *box) doors() map[string]func(permits.Permit) error {
	ctx := b.t.Context()
	write := func(verb sqlstore.Verb, name string) func(permits.Permit) error {
		return func(p permits.Permit) error {
			_, err := b.Commit(ctx, p, b.at("a", name), b.op(verb, "a", name), nil)
			return err
		}
	}
	return map[string]func(permits.Permit) error{
		"get":    func(p permits.Permit) error { _, err := b.Get(p, b.at("a", "x")); return err },
		"find":   func(p permits.Permit) error { _, err := b.Find(ctx, p, b.at("a", "x")); return err },
		"live":   func(p permits.Permit) error { _, _, err := b.Live(ctx, p, b.at("a", "x")); return err },
		"latest": func(p permits.Permit) error { _, err := b.Latest(ctx, p, b.at("a", "x")); return err },
		"read":   func(p permits.Permit) error { _, err := b.Read(ctx, p, b.at("a", "x"), ""); return err },
		"vacant": func(p permits.Permit) error { return asPermitted(b.CheckVacant(ctx, p, b.at("a", "x"))) },
		"page": func(p permits.Permit) error {
			_, err := b.List(ctx, p, b.services, &ListOptions{Namespace: "a", Filter: &cache.Filter{}})
			return err
		},
		"plan": func(p permits.Permit) error {
			_, err := b.Plan(ctx, p, b.at("a", "x"), nil, &corev1.Service{}, false)
			return err
		},
		"standing": func(p permits.Permit) error { _, err := b.Existing(p, b.at("a", "x")); return err },
		"list":     func(p permits.Permit) error { _, err := b.Collection(p, b.at("a", "")); return err },
		"at":       func(p permits.Permit) error { _, err := b.CollectionAt(p, b.at("a", ""), b.Revision()); return err },
		"scan": func(p permits.Permit) error {
			return b.scan(ctx, p, b.at("a", ""), b.Revision(), cache.Position{}, func(*sqlstore.Row) bool { return true })
		},
		"watch": func(p permits.Permit) error {
			w, err := b.Watch(p, b.at("a", ""), cache.Scope{}, b.Revision())
			if err == nil {
				w.Stop()
			}
			return err
		},
		"watch now": func(p permits.Permit) error {
			w, _, err := b.WatchNow(p, b.at("a", ""), cache.Scope{})
			if err == nil {
				w.Stop()
			}
			return err
		},
		// All objects of the resource, in all namespaces: none of the permits below is for that.
		"restore": func(p permits.Permit) error { _, err := b.Restore(ctx, p, b.services, sqlstore.Key{}); return err },
		"create":  write(sqlstore.Create, "new"),
		"update":  write(sqlstore.Update, "x"),
		"replace": func(p permits.Permit) error {
			item := b.cache.Get("services", "a", "x")
			_, err := b.Replace(ctx, p, b.at("a", "x"), item, &corev1.Service{}, b.op(sqlstore.Update, "a", "x").Value, nil)
			return err
		},
		"delete": write(sqlstore.Delete, "y"),
		"discard": func(p permits.Permit) error {
			return b.Discard(ctx, p, p, b.at("a", "x"), b.cache.Get("services", "a", "x"))
		},
	}
}

// TestDoors: each way in is open to the permits named, and to no others; a closed one
// changes nothing.
func TestDoors(t *testing.T) {
	open := map[string][]string{
		"get x":                              {"find", "get", "latest", "live", "read"},
		"list ":                              {"at", "list", "page", "scan"},
		"list x":                             {"at", "list", "page", "scan"},
		"watch ":                             {"at", "list", "page", "scan", "watch", "watch now"},
		"watch x":                            {"at", "list", "page", "scan", "watch", "watch now"},
		"create ":                            {"create", "standing", "vacant"},
		"create new":                         {"create"},
		"create x":                           {"standing", "vacant"},
		"update x":                           {"find", "get", "latest", "live", "plan", "read", "replace", "update"},
		"patch x":                            {"find", "get", "latest", "live", "plan", "read", "replace", "update"},
		"delete x":                           {"find", "get", "latest", "live", "plan", "read", "replace", "update"},
		"deletecollection ":                  {"at", "delete", "find", "get", "latest", "list", "live", "page", "plan", "read", "replace", "scan", "update"},
		"get elsewhere":                      nil,
		"impersonate x":                      nil,
		"proxy x":                            nil,
		" x":                                 nil,
		"unsafe-delete-ignore-read-errors x": nil,
	}
	for permit, want := range open {
		verb, name, _ := strings.Cut(permit, " ")
		b := newBox(t)
		var got []string
		for door, try := range b.doors() {
			before := b.Revision()
			err := try(b.permit(verb, "", "a", name))
			var uncovered *permits.UncoveredError
			switch {
			case err == nil:
				got = append(got, door)
			case !errors.As(err, &uncovered):
				t.Errorf("%s with %q: %v", door, permit, err)
			case b.Revision() != before:
				t.Errorf("%s with %q is refused and changes something", door, permit)
			}
			for what, other := range map[string]permits.Permit{
				"no permit": {}, "one for b": b.permit(verb, "", "b", name), "one for status": b.permit(verb, "status", "a", name),
			} {
				if err := try(other); !errors.As(err, &uncovered) {
					t.Errorf("%s with %s to %q: %v", door, what, permit, err)
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q opens %q, want %q", permit, got, want)
		}
	}
}

// TestNames: a permit for one name shows no other, whatever the filter lets pass.
func TestNames(t *testing.T) {
	b := newBox(t)
	p := b.permit("watch", "", "a", "x")
	var shown []string
	show := func(item *cache.Item) bool {
		shown = append(shown, item.Namespace+"/"+item.Name)
		return true
	}
	list, err := b.Collection(p, b.at("a", ""))
	if err != nil {
		t.Fatal(err)
	}
	list.Select(nil, cache.Position{}, show)
	old, err := b.CollectionAt(p, b.at("a", ""), b.Revision())
	if err != nil || old == nil {
		t.Fatal(old, err)
	}
	old.Select(nil, cache.Position{}, show)
	if err := b.scan(t.Context(), p, b.at("a", ""), b.Revision(), cache.Position{}, func(row *sqlstore.Row) bool {
		shown = append(shown, row.Key.Namespace+"/"+row.Key.Name)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	w, now, err := b.WatchNow(p, b.at("a", ""), cache.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	now.Select(nil, cache.Position{}, show)
	for _, name := range []string{"y", "x"} {
		if _, err := b.open.Write(t.Context(), b.op(sqlstore.Delete, "a", name)); err != nil {
			t.Fatal(err)
		}
	}
	events, _, err := w.Take(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		show(e.Item())
	}
	if want := []string{"a/x", "a/x", "a/x", "a/x", "a/x"}; !slices.Equal(shown, want) {
		t.Errorf("it shows %q", shown)
	}
}

// TestWhatBelongs: nothing rides on a write but claims, and what goes with the object.
func TestWhatBelongs(t *testing.T) {
	b := newBox(t)
	p := b.permit("deletecollection", "", "a", "")
	endpoints := b.op(sqlstore.Delete, "a", "x")
	endpoints.Key.Resource = "endpoints"
	endpoints.Expect = b.cache.Get("endpoints", "a", "x").Revision
	change := func(edit func(*sqlstore.Op)) sqlstore.Op {
		op := endpoints
		edit(&op)
		return op
	}
	for _, op := range []sqlstore.Op{
		change(func(op *sqlstore.Op) { op.Key.Name = "y" }), change(func(op *sqlstore.Op) { op.Key.Namespace = "b" }),
		change(func(op *sqlstore.Op) { op.Key.Resource = "secrets" }), change(func(op *sqlstore.Op) { op.Verb = sqlstore.Update }),
		change(func(op *sqlstore.Op) { op.Key.Resource = "" }), change(func(op *sqlstore.Op) { op.Key.Resource = "services" }),
	} {
		if _, err := b.Commit(t.Context(), p, b.at("a", "x"), b.op(sqlstore.Delete, "a", "x"), []sqlstore.Op{op}); err == nil {
			t.Errorf("%v rides on the delete of a service", op)
		}
	}
	claim := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "~pool", Name: "one"}, Value: []byte(`{}`)}
	if _, err := b.Commit(t.Context(), p, b.at("a", "x"), b.op(sqlstore.Delete, "a", "x"), []sqlstore.Op{endpoints, claim}); err != nil {
		t.Error(err)
	}
	if b.cache.Get("endpoints", "a", "x") != nil || !b.claims(b.at("a", "x").Resource.Storage).Taken("pool", "one") || b.cache.Get("~pool", "", "one") == nil {
		t.Error("what belongs to a write is not written")
	}
}

// TestNoOtherWay: there is no way in that is not among the doors.
func TestNoOtherWay(t *testing.T) {
	harmless := []string{"AskPastFloor", "Bound", "CatchUp", "CheckSkipped", "Codec", "Floor", "FollowWith", "Head", "Home", "NamespaceCreated", "Now", "Oldest", "Outdated", "AwaitConflict", "PastFloor", "Reach", "Revision", "RevisionAt", "Since", "Sizes", "WaitFor", "WrittenAt"}
	given := []string{"CheckSize", "Convert", "Decode", "DecodeForColumns", "Each", "Encode", "Form", "JSON", "NamespaceExisted", "Selects", "Unstored"} // the caller already has the objects
	locked := []string{"CheckVacant", "Collection", "CollectionAt", "Commit", "Current", "Discard", "Find", "Get", "Latest", "List", "Live", "Namespace", "Past", "Plan", "Read", "Replace", "Restore", "Existing", "Watch", "WatchNow"}
	s := reflect.TypeFor[*Store]()
	for i := range s.NumMethod() {
		m := s.Method(i)
		takes := slices.ContainsFunc([]int{1, 2}, func(n int) bool { return n < m.Type.NumIn() && m.Type.In(n) == reflect.TypeFor[permits.Permit]() })
		if takes != slices.Contains(locked, m.Name) || !takes && !slices.Contains(harmless, m.Name) && !slices.Contains(given, m.Name) {
			t.Errorf("%s takes a permit: %v", m.Name, takes)
		}
	}
	for i := range s.Elem().NumField() {
		if f := s.Elem().Field(i); f.IsExported() {
			t.Errorf("the field %s is open to all users", f.Name)
		}
	}
}

// TestReadsAllocateNothing: permits cost a read no allocation.
func TestReadsAllocateNothing(t *testing.T) {
	b := newBox(t)
	p, at := b.permit("get", "", "a", "x"), b.at("a", "x")
	if n := testing.AllocsPerRun(100, func() { _, _ = b.Get(p, at) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// asPermitted hides that an object exists, which only a user who may create it learns.
func asPermitted(err error) error {
	var exists *sqlstore.ExistsError
	if errors.As(err, &exists) {
		return nil
	}
	return err
}

// TestEncodedIsOwned: later encodings do not change bytes that Encode returned, and those hold on to no more
// memory than they need.
func TestEncodedIsOwned(t *testing.T) {
	b := newBox(t)
	encode := func(name string) []byte {
		obj := &corev1.Service{}
		obj.Name = name
		value, err := b.Encode(t.Context(), b.services, obj, 0)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	first := encode(strings.Repeat("a", 4000))
	was := string(first)
	encode(strings.Repeat("b", 8000))
	if second := encode(strings.Repeat("b", 3000)); string(first) != was || cap(second) > 4<<10 {
		t.Errorf("%.100s..., a capacity of %d bytes for %d", first, cap(second), len(second))
	}
}
