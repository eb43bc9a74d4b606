package cache

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// labeled returns an object with many labels, and one that comes first.
func labeled(first string, many int, revision int64) *Item {
	var b strings.Builder
	b.WriteString(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","labels":{` + first)
	for i := range many {
		b.WriteString(`,"` + strconv.Itoa(i) + `":""`)
	}
	b.WriteString(`}}}`)
	return NewOwnItem(&sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "a", Name: "x"}, Revision: revision, Value: []byte(b.String())}, nil)
}

// TestReenter: whether few or many labels stay, those that went have no entries, and all others
// are of the new object.
func TestReenter(t *testing.T) {
	for _, many := range []int{0, 3, linearSearchMax - 1, linearSearchMax, 1000} {
		old, it := labeled(`"went":"","value":"1"`, many, 1), labeled(`"came":"1","value":"2"`, many, 2)
		into := newPostings()
		reindex(into, labelTerms, old, nil)
		reindex(into, labelTerms, it, old)
		found := map[term]bool{}
		for _, p := range into.all() {
			found[p.term.Value()] = p.item == it
		}
		if len(found) != many+2 || !found[term{"came", "1"}] || !found[term{"value", "2"}] {
			t.Errorf("%d labels have the entries %v", many+2, found)
		}
		for t2, ok := range found {
			if !ok {
				t.Errorf("%v is of the object before", t2)
			}
		}
	}
}

// BenchmarkReenter: a body holds some hundred thousand labels, and writers wait while they are
// entered: the time must grow with their number, and not with its square.
func BenchmarkReenter(b *testing.B) {
	for _, many := range []int{3, 3000, 30_000} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			items := []*Item{labeled(`"a":""`, many, 1), labeled(`"b":""`, many, 2)}
			into := newPostings()
			reindex(into, labelTerms, items[1], nil)
			for i := 0; b.Loop(); i++ {
				reindex(into, labelTerms, items[i%2], items[(i+1)%2])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*many), "ns/label")
		})
	}
}
