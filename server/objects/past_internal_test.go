package objects

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestLongListsOfThePast: the server reads at most two long lists of earlier states into memory at a time, one of each user. Short lists
// and pages do not wait for them.
func TestLongListsOfThePast(t *testing.T) {
	b := newBox(t)
	ctx := t.Context()
	write := func(name string, size int) int64 {
		t.Helper()
		value := fmt.Sprintf(`{"kind":"Service","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","annotations":{"a":%q}}}`, name, strings.Repeat("x", size))
		out, err := b.open.Write(ctx, sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "services", Namespace: "a", Name: name}, Value: []byte(value)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Revisions[0]
	}
	const large = 6
	var at int64
	for i := range large {
		at = write(fmt.Sprintf("large-%d", i), pastFree/(large-2))
	}
	write("later", 1)
	fresh := cache.New(b.catalogue) // it has the newest state alone
	if _, err := fresh.Load(ctx, b.open); err != nil {
		t.Fatal(err)
	}
	s := New(b.catalogue, b.open, fresh)
	list := func(ctx context.Context, user, namespace string, limit int64) (*Page, error) {
		o := &ListOptions{User: user, Namespace: namespace, Filter: cache.NewFilter(nil, nil)}
		o.FieldSelector = fields.Everything()
		o.ResourceVersion, o.ResourceVersionMatch, o.Limit = strconv.FormatInt(at, 10), metav1.ResourceVersionMatchExact, limit
		o.ReadRevision()
		return s.List(ctx, b.permit("list", "", namespace, ""), b.services, o)
	}
	read := func(user, namespace string, limit int64, want int) *Page {
		t.Helper()
		p, err := list(ctx, user, namespace, limit)
		if err != nil || len(p.Items) != want {
			t.Fatalf("%v", err)
		}
		return p
	}
	waits := func(user string) {
		t.Helper()
		soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := list(soon, user, "a", 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s does not wait: %v", user, err)
		}
	}
	first := read("jane", "a", 0, large+2)
	waits("jane")
	second := read("john", "a", 0, large+2)
	waits("paul")
	for _, user := range []string{"jane", "john", "paul"} {
		read(user, "a", 2, 2).End()
		read(user, "b", 0, 2).End()
	}
	first.End()
	first.End()
	waits("john")
	read("paul", "a", 0, large+2).End()
	second.End()
	third := read("jane", "a", 0, large+2)
	read("john", "a", 0, large+2).End()
	third.End()
}
