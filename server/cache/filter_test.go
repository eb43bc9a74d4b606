package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

var own = json.New(json.Settings{})

// podWith returns an item with labels.
func podWith(name string, set labels.Set) *cache.Item {
	var text []string
	for k, v := range set {
		text = append(text, fmt.Sprintf("%q:%q", k, v))
	}
	slices.Sort(text)
	value := within("default", bigPod(name, "n1", strings.Join(text, ",")))
	return cache.NewItem(own, &sqlstore.Row{Key: sqlstore.Key{Resource: "pods", Namespace: "default", Name: name}, Revision: 1, Value: []byte(value)}, podCatalogue().ByStorage("pods"))
}

// TestSelectorsOfManyTerms: a selector with too many terms to test one by one selects the same items as the
// library.
func TestSelectorsOfManyTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var items []*cache.Item
	var sets []labels.Set
	for i := range 60 {
		set := labels.Set{}
		for _, k := range []string{"a", "b", "c"} {
			if r.IntN(3) > 0 {
				set[k] = pick("x", "y", "5", "7", "")
			}
		}
		items, sets = append(items, podWith(fmt.Sprint("p", i), set)), append(sets, set)
	}
	filler := make([]string, 20)
	for i := range filler {
		filler[i] = fmt.Sprint("v", i)
	}
	chosen := 0
	for range 3000 {
		terms := []string{pick("z", "y1") + " notin (" + strings.Join(filler, ",") + ")"} // makes it long, and selects all
		for range r.IntN(4) {
			k := pick("a", "b", "c")
			terms = append(terms, pick(
				k, "!"+k, k+"=x", k+"!=x", k+" in (x,5,"+strings.Join(filler, ",")+")", k+" in (x,y,7)", k+" notin (y,7)", k+">4", k+"<6", k+">5", k+"=",
			))
		}
		text := strings.Join(terms, ",")
		sel := selector(t, text)
		f := cache.NewFilter(sel, nil)
		for i, it := range items {
			want := sel.Matches(sets[i])
			if got := f.Match(it); got != want {
				t.Fatalf("%s of %v: %v, want %v", text, sets[i], got, want)
			}
			if want {
				chosen++
			}
		}
	}
	if chosen == 0 {
		t.Error("nothing was ever selected")
	}
}

// TestFieldsOfManyTerms is the same for fields.
func TestFieldsOfManyTerms(t *testing.T) {
	not := make([]cache.FieldTerm, 0, 40)
	for i := range 40 {
		not = append(not, cache.FieldTerm{Index: cache.FieldName, Value: fmt.Sprint("p", i), Not: true})
	}
	for _, tc := range []struct {
		name string
		more []cache.FieldTerm
		want bool
	}{
		{"p3", nil, false},
		{"p40", nil, true},
		{"p40", []cache.FieldTerm{{Index: 0, Value: "n1"}}, true},
		{"p40", []cache.FieldTerm{{Index: 0, Value: "n2"}}, false},
		{"p40", []cache.FieldTerm{{Index: 0, Value: "n1"}, {Index: 0, Value: "n2"}}, false},
		{"p40", []cache.FieldTerm{{Index: cache.FieldNamespace, Value: "other", Not: true}}, true},
		{"p40", []cache.FieldTerm{{Index: cache.FieldNamespace, Value: "other"}}, false},
	} {
		f := cache.NewFilter(nil, append(not[:40:40], tc.more...))
		if got := f.Match(podWith(tc.name, nil)); got != tc.want {
			t.Errorf("%s, %v: %v", tc.name, tc.more, got)
		}
	}
}

// BenchmarkLongSelector asks 5,000 objects with selectors as long as a request allows.
func BenchmarkLongSelector(b *testing.B) {
	c, _ := full(5000)
	values := make([]string, 100_000)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	for name, text := range map[string]string{
		"values": "tier in (" + strings.Join(values, ",") + ")",
		"terms":  "tier!=" + strings.Join(values, ",tier!="),
		"keys":   "!" + strings.Join(values, ",!"),
	} {
		sel := selector(b, text)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Snapshot("pods").Select(cache.NewFilter(sel, nil), "", cache.Position{}, func(*cache.Item) bool { return true })
			}
		})
	}
}
