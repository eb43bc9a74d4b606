package objects

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestLongListsOfThePast: a user reads one long list of an earlier state into memory at a time, and two users do, whatever they
// request. Those that wait hold nothing in memory, and their requests know that they wait. Short lists, and pages, do not wait for them.
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
	var waiting func(wait func() error) error
	list := func(ctx context.Context, user, namespace string, limit int64) (*Page, error) {
		o := &ListOptions{User: user, Waiting: waiting, Namespace: namespace, Filter: cache.NewFilter(nil, nil)}
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
	const queued = 8
	queue, leave := context.WithCancel(ctx)
	var wait, done sync.WaitGroup
	wait.Add(queued)
	waiting = func(enter func() error) error {
		wait.Done()
		return enter()
	}
	before := heapBytes()
	for i := range queued {
		done.Go(func() {
			if _, err := list(queue, fmt.Sprint("user", i), "a", 0); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if holds := heapBytes() - before; holds > queued*pastFree/2 {
		t.Errorf("%d lists that wait hold %d bytes", queued, holds)
	}
	leave()
	done.Wait()
	waiting = nil
	first.End()
	first.End()
	waits("john")
	read("paul", "a", 0, large+2).End()
	second.End()
	third := read("jane", "a", 0, large+2)
	read("john", "a", 0, large+2).End()
	third.End()
}

// heapBytes returns the number of bytes that are in use.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // the first one keeps what was in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
