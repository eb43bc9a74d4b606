package verbs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// laggard is a database that takes its time for each transaction.
type laggard struct {
	sqlstore.Driver
	lag time.Duration
}

func (l laggard) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	time.Sleep(l.lag)
	return l.Driver.Apply(ctx, batch, now)
}

const ns = "/api/v1/namespaces"

// TestManyPatchersOfOne: every writer that names no version succeeds, however many there are and whatever
// they write, on a slow database and between two servers.
func TestManyPatchersOfOne(t *testing.T) {
	memory := storetest.NewShared()
	servers := []*fixture{serverOn(t, laggard{memory.Open(), time.Millisecond}), serverOn(t, laggard{memory.Open(), 2 * time.Millisecond})}
	servers[0].want(201, "POST", ns, `{"metadata":{"name":"a"}}`)
	const services = ns + "/a/services"
	servers[0].want(201, "POST", services, `{"metadata":{"name":"c"},"spec":{"clusterIP":"None","ports":[{"port":1}]}}`)
	const writers = 100
	var wg sync.WaitGroup
	for i := range writers {
		f := servers[i%4/3] // a quarter of them at the slower one
		wg.Go(func() {
			key := fmt.Sprintf("w%d", i)
			method, path, body, kind := "PATCH", services+"/c", `{"metadata":{"annotations":{"`+key+`":"x"}}}`, merge
			switch i % 3 {
			case 1:
				kind = "application/strategic-merge-patch+json"
			case 2:
				path += "?fieldManager=" + key
				kind = "application/apply-patch+yaml"
				body = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"c","annotations":{"` + key + `":"x"}}}`
			}
			if w := f.do(method, path, body, "Content-Type", kind); w.Code != 200 {
				t.Errorf("%s of %s: %d %s", kind, key, w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	got := servers[1].want(200, "GET", services+"/c", "")
	meta := got["metadata"].(map[string]any)
	if n := len(meta["annotations"].(map[string]any)); n != writers {
		t.Errorf("%d annotations, want %d", n, writers)
	}
}

// TestManyDeletersAmongPatchers: a delete without preconditions wins in the end, too.
func TestManyDeletersAmongPatchers(t *testing.T) {
	f := serverOn(t, laggard{storetest.NewShared().Open(), time.Millisecond})
	f.want(201, "POST", ns, `{"metadata":{"name":"a"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				w := f.do("PATCH", configmaps+"/c", fmt.Sprintf(`{"data":{"w%d":"%d"}}`, i, n), "Content-Type", merge)
				if w.Code != 200 && w.Code != 404 {
					t.Errorf("a patch: %d %s", w.Code, w.Body)
				}
			}
		})
	}
	f.want(200, "DELETE", configmaps+"/c", "")
	stop.Store(true)
	wg.Wait()
}

// dawdler takes its time to admit what one client writes.
type dawdler struct{ calls *atomic.Int32 }

func (dawdler) Name() string                        { return "dawdler" }
func (dawdler) Handles(op admission.Operation) bool { return op == admission.Update }
func (d dawdler) Validate(_ context.Context, a *admission.Attributes) error {
	if cm, ok := a.Object.(*corev1.ConfigMap); ok && strings.HasPrefix(cm.Data["last"], "slow") {
		d.calls.Add(1)
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// TestSlowAdmissionAmongQuickWriters: a writer with slow admission has its turn as well, among writers that
// never wait, and writers that name versions. The number of its admission calls is bounded by how often it
// can lose.
func TestSlowAdmissionAmongQuickWriters(t *testing.T) {
	calls := &atomic.Int32{}
	f := serverOn(t, laggard{storetest.NewShared().Open(), time.Millisecond}, dawdler{calls})
	f.want(201, "POST", ns, `{"metadata":{"name":"a"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for !stop.Load() {
				if i%2 == 0 {
					f.do("PATCH", configmaps+"/c", fmt.Sprintf(`{"data":{"last":"quick%d"}}`, i), "Content-Type", merge)
					continue
				}
				var got corev1.ConfigMap
				if err := json.Unmarshal(f.do("GET", configmaps+"/c", "").Body.Bytes(), &got); err != nil {
					t.Error(err)
					return
				}
				f.do("PUT", configmaps+"/c", fmt.Sprintf(`{"metadata":{"name":"c","resourceVersion":%q},"data":{"last":"named%d"}}`, got.ResourceVersion, i))
			}
		})
	}
	for i := range 5 {
		before := calls.Load()
		f.want(200, "PATCH", configmaps+"/c", fmt.Sprintf(`{"data":{"last":"slow%d"}}`, i), "Content-Type", merge)
		if n := calls.Load() - before; n > 40 {
			t.Errorf("admission was asked %d times for one patch", n)
		}
	}
	stop.Store(true)
	wg.Wait()
}

// TestGivenUp: a writer whose client leaves, or whose time is over, blocks no other.
func TestGivenUp(t *testing.T) {
	calls := &atomic.Int32{}
	f := serverOn(t, laggard{storetest.NewShared().Open(), 5 * time.Millisecond}, dawdler{calls})
	f.want(201, "POST", ns, `{"metadata":{"name":"a"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	patch := func(ctx context.Context, i int) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, "PATCH", configmaps+"/c", strings.NewReader(fmt.Sprintf(`{"data":{"w%d":"x"}}`, i)))
		r.Header.Set("Content-Type", merge)
		w := httptest.NewRecorder()
		f.front.ServeHTTP(w, r)
		return w
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			if w := patch(ctx, i); w.Code != 200 && w.Code != 504 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if n := verbs.Waiting(f.h, sqlstore.Key{Resource: "configmaps", Namespace: "a", Name: "c"}); n != 0 {
		t.Errorf("%d stand in line, though nobody is left", n)
	}
	if w := patch(t.Context(), 99); w.Code != 200 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}
