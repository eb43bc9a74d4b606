package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/sqlstore"
)

const (
	firstOwner  = `{"apiVersion":"v1","kind":"A","name":"a","uid":"1"}`
	secondOwner = `{"uid":"2","name":"\u0062","kind":"B","apiVersion":"g/v1","blockOwnerDeletion":true,"controller":false}`
)

// withMetadata returns an item of an object that has more in its metadata.
func withMetadata(name, more string) *Item {
	value := fmt.Sprintf(`{"kind":"Toy","apiVersion":"v1","metadata":{"name":%q,"uid":"%s-uid"%s},"spec":%q}`, name, name, more, strings.Repeat("what all of them say ", 50))
	return NewOwnItem(&sqlstore.Row{Key: sqlstore.Key{Resource: "toys", Namespace: "n", Name: name}, Revision: 7, Value: []byte(value)}, nil)
}

// packed has an item packed.
func packed(t testing.TB, it *Item) *Item {
	t.Helper()
	return packedIn(t, it, &packBuffers{})
}

func packedIn(t testing.TB, it *Item, room *packBuffers) *Item {
	t.Helper()
	p := packer{home: it.info()}
	of := p.shapeOf(nil, 3, func(int) *Item { return withMetadata("sample", "") })
	if of == nil || p.pack(it, of, room) == 0 || !it.body.Load().packed() {
		t.Fatal("the item is not packed")
	}
	return it
}

// TestOwnerInfoOfPacked: a packed object has the same owners as before, and its value is read for them
// only if there are many.
func TestOwnerInfoOfPacked(t *testing.T) {
	var list []string
	for i := range 40 {
		list = append(list, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"of-%d","uid":"0b7e6f3c-4d7b-4a51-9c1e-%012d","controller":%t}`, i, i, i == 0))
	}
	for name, c := range map[string]struct {
		more string
		many bool
	}{
		"nothing": {},
		"labels":  {more: `,"labels":{"a":"b","c":"d"}`},
		"owners":  {more: `,"ownerReferences":[` + firstOwner + `,` + secondOwner + `]`},
		"all":     {more: `,"labels":{"a":"b"},"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["orphan","foregroundDeletion"],"ownerReferences":[` + firstOwner + `]`},
		"few":     {more: `,"ownerReferences":[` + strings.Join(list[:10], ",") + `]`},
		"many":    {more: `,"ownerReferences":[` + strings.Join(list, ",") + `]`, many: true},
		"long":    {more: `,"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"` + strings.Repeat("x", 1<<10) + `","uid":"1"}]`, many: true},
	} {
		it := withMetadata(name, c.more)
		info, owners, before := it.OwnerInfo(), it.Owners(nil), it.Meta().Labels
		finalizers, whole := it.Written()
		packed(t, it)
		b := it.body.Load()
		if metadata.HasManyOwners(b.meta()) != c.many || len(b.common.Owners()) > 1<<10 {
			t.Errorf("%s: owners are kept: %v, in %d bytes", name, !metadata.HasManyOwners(b.meta()), len(b.common.Owners()))
		}
		if !c.many { // the value is not there to be read
			away := bodyOf(packedData(b.meta(), nil), b.with(), 0)
			away.common = b.common
			it.body.Store(away)
		}
		if d := cmp.Diff(info, it.OwnerInfo()) + cmp.Diff(owners, it.Owners(nil)) + cmp.Diff(before, it.body.Load().common.Set()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		it.body.Store(b)
		again, references := it.Written()
		if d := cmp.Diff(string(finalizers), string(again)) + cmp.Diff(whole, references); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if info.UID != name+"-uid" || c.many && len(owners) == 0 || !slices.EqualFunc(owners, whole, func(a, b Owner) bool { b.JSON = nil; return cmp.Equal(a, b) }) {
			t.Errorf("%s: it is %+v with %v", name, info, owners)
		}
	}
}

// TestOwnersInCommon: neighbors share equal owners and labels, also
// if only one of both is equal.
func TestOwnersInCommon(t *testing.T) {
	const one = `,"labels":{"a":"b"},"ownerReferences":[` + firstOwner + `]`
	var room packBuffers
	of := func(name, more string) *packing.Common {
		return packedIn(t, withMetadata(name, more), &room).body.Load().common
	}
	a, b := of("a", one), of("b", one)
	otherOwner, otherLabel := of("c", strings.Replace(one, firstOwner, secondOwner, 1)), of("d", strings.Replace(one, `"b"`, `"c"`, 1))
	at := func(s string) *byte { return unsafe.StringData(s) }
	switch {
	case a != b:
		t.Error("all of it lies there twice")
	case a.Owners() == otherOwner.Owners() || packing.SameLabels(a, otherLabel) || !packing.SameLabels(a, otherOwner):
		t.Error("what is different is one")
	case at(a.Get("a")) != at(otherOwner.Get("a")) || at(a.Owners()) != at(otherLabel.Owners()):
		t.Error("the same part lies there twice")
	case of("e", "") != nil:
		t.Error("nothing takes memory")
	}
	// An item that was read in another order shares it once all are in order.
	elsewhere := func(labels labels.Set) *packing.Common {
		return (&packing.Interner{}).Common(packing.AppendLabels(nil, labels), []byte(a.Owners()))
	}
	twice, alike := elsewhere(a.Set()), elsewhere(labels.Set{"x": "y"})
	if room.near.Intern(twice) != a || room.near.Intern(nil) != nil {
		t.Error("what is equal is not shared")
	}
	if c := room.near.Intern(alike); !packing.SameLabels(c, alike) || at(c.Owners()) != at(a.Owners()) || room.near.Intern(alike) != c {
		t.Error("owners are not shared")
	}
}

func BenchmarkOwnersOfPacked(b *testing.B) {
	it := packed(b, withMetadata("a", `,"labels":{"app":"web"},"ownerReferences":[`+firstOwner+`]`))
	var owners []Owner
	b.ReportAllocs()
	for b.Loop() {
		if owners = it.Owners(owners[:0]); len(owners) != 1 || it.OwnerInfo().UID == "" {
			b.Fatal(owners)
		}
	}
}

// TestAlikeAreLookedAtOnce: items with the labels of the one before are indexed and selected as
// they would be one by one, packed or not.
func TestAlikeAreLookedAtOnce(t *testing.T) {
	all := newItems()
	for i := range 200 {
		text := fmt.Sprintf(`,"labels":{"app":"a%d","tier":"t%d"}`, i/10, i/40%2)
		if i%50 == 7 {
			text = ""
		}
		it := withMetadata(fmt.Sprintf("p%03d", i), text)
		if i%20 != 3 {
			packed(t, it)
		}
		all.Set(it)
	}
	if got, want := index(all, labelTerms, sameLabels, never).all(), index(all, labelTerms, nil, never).all(); !slices.Equal(got, want) || len(got) != 2*196 {
		t.Errorf("%d entries, not %d", len(got), len(want))
	}
	for _, text := range []string{"app=a3", "tier=t1,app!=a5", "!app", "app in (a1,a2)"} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		m, selected := &matcher{Filter: NewFilter(selector, nil)}, 0
		all.Scan(func(it *Item) bool {
			is := m.match(it)
			if is != m.Match(it) {
				t.Errorf("%s selects %s: %v", text, it.Name, is)
			}
			if is {
				selected++
			}
			return true
		})
		if selected == 0 || selected == all.Len() {
			t.Errorf("%s selects %d items", text, selected)
		}
	}
}
