package podverbs

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestSelectorsAreParsedOnce: evictions parse the selector of a budget once for each of its revisions.
func TestSelectorsAreParsedOnce(t *testing.T) {
	resource := kinds.NewCatalogue(builtin.Resources()).Lookup("policy", "v1", "poddisruptionbudgets")
	e := &evicting{h: &verbs.Handler{Answers: &answers.Answers{}}}
	parsed := func(item *cache.Item, want string) uintptr {
		t.Helper()
		selector, err := e.selectorOf(item)
		if err != nil || selector.String() != want {
			t.Fatalf("%v, %v; want %s", selector, err, want)
		}
		return reflect.ValueOf(selector).Pointer()
	}
	var last uintptr
	for revision := range int64(3) {
		want := fmt.Sprintf("app=v%d", revision)
		item := cache.NewItem(json.New(json.Settings{}), &sqlstore.Row{
			Key: sqlstore.Key{Resource: resource.Storage.Key, Namespace: "a", Name: "b"}, Revision: revision + 1, Created: 1,
			Value: fmt.Appendf(nil, `{"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":"b","namespace":"a","uid":"u"},"spec":{"selector":{"matchLabels":{"app":"v%d"}}}}`, revision),
		}, resource)
		first := parsed(item, want)
		if again := parsed(item, want); again != first || first == last {
			t.Errorf("revision %d was parsed again, or not at all", revision)
		}
		last = first
	}
}
