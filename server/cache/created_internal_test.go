package cache

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestCreated: an item has the revision of its creation, however long ago that was, plain and packed.
func TestCreated(t *testing.T) {
	const now = 1 << 40
	for _, created := range []int64{now, now - 1, now - maxAge + 1, now - maxAge, 1, now + 1} {
		value := `{"kind":"Toy","apiVersion":"v1","metadata":{"name":"a","uid":"u"},"spec":"` + strings.Repeat("what all of them say ", 50) + `"}`
		row := &sqlstore.Row{Key: sqlstore.Key{Resource: "toys", Namespace: "n", Name: "a"}, Revision: now, Created: created, Value: []byte(value)}
		it := NewOwnItem(row, nil)
		holds := func(when string, it *Item) {
			t.Helper()
			if got := it.Created(); got != created {
				t.Errorf("%s, it was created at %d instead of %d", when, got, created)
			}
		}
		holds("made", it)
		holds("at another revision", it.at(2*now))
		holds("packed", packed(t, it))
		it.JSON()
		if it.JSON(); it.body.Load().packed() {
			t.Fatal("it is still packed")
		}
		holds("unpacked", it)
		it.body.Store(it.body.Load().cloned())
		holds("cloned", it)
		row.Damaged = errors.New("damaged")
		if it = NewItem(json.New(json.Settings{}), row, nil); it.Err() == nil {
			t.Fatal("it can be read")
		}
		holds("corrupt", it)
		holds("corrupt, at another revision", it.at(2*now))
	}
}
