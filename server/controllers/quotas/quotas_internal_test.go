package quotas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/aggregator/documents"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// settled is the time for which a controller does not change what a client has written, in tests about that.
const settled = time.Second

func runQuotas(settle time.Duration, change ...func(*Controller)) func(*controllertest.FakeAPI) func(context.Context) error {
	return func(w *controllertest.FakeAPI) func(context.Context) error {
		q := &Controller{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog, Debounce: settle}, Catalogue: w.Catalogue}
		for _, f := range change {
			f(q)
		}
		return q.Run
	}
}

// limit returns a quota as it is made; amounts are names and how much of each.
func limit(amounts ...string) string {
	hard := map[string]string{}
	for i := 0; i < len(amounts); i += 2 {
		hard[amounts[i]] = amounts[i+1]
	}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"hard": hard}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// uses checks that the status of a quota has the limits of its spec, and the wanted usage.
func uses(w *controllertest.FakeAPI, namespace, name string, want ...string) {
	w.T.Helper()
	var q corev1.ResourceQuota
	if err := json.Unmarshal([]byte(w.Read(quotasStorage, namespace, name)), &q); err != nil {
		w.T.Fatal(err)
	}
	if len(q.Status.Hard) != len(q.Spec.Hard) {
		w.T.Errorf("%s: limits %v and should %v", name, q.Status.Hard, q.Spec.Hard)
	}
	got := map[string]string{}
	for k, v := range q.Status.Used {
		got[string(k)] = v.String()
	}
	expected := map[string]string{}
	for i := 0; i < len(want); i += 2 {
		expected[want[i]] = want[i+1]
	}
	if fmt.Sprint(got) != fmt.Sprint(expected) {
		w.T.Errorf("%s: uses %v, want %v", name, got, expected)
	}
}

// charge records more use, as admission does.
func charge(w *controllertest.FakeAPI, namespace, name string, amounts ...string) {
	w.Change(quotasStorage, namespace, name, func(text string) string {
		var tree map[string]any
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			w.T.Fatal(err)
		}
		used := tree["status"].(map[string]any)["used"].(map[string]any)
		for i := 0; i < len(amounts); i += 2 {
			used[amounts[i]] = amounts[i+1]
		}
		changed, err := json.Marshal(tree)
		if err != nil {
			w.T.Fatal(err)
		}
		return string(changed)
	})
}

// TestQuotas: a quota is counted when it is made, when it changes, and when something goes
// that it limits, whatever that is.
func TestQuotas(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		pod := func(phase string) string {
			return `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}]},"status":{"phase":"` + phase + `"}}`
		}
		w.Set("pods", "a", "p", pod("Running"))
		w.Set("pods", "b", "p", pod("Running"))
		w.Set("configmaps", "a", "c", `{}`)
		w.Set(quotasStorage, "a", "q", limit("pods", "5", "requests.cpu", "1", "configmaps", "3", "count/deployments.apps", "2", "count/nothings.example.com", "1"))
		controllertest.Advance(time.Second)
		uses(w, "a", "q", "pods", "1", "requests.cpu", "100m", "configmaps", "1", "count/deployments.apps", "0")
		w.Calls()

		// Admission adds, and nothing is done for that.
		charge(w, "a", "q", "pods", "2", "requests.cpu", "200m")
		w.Set("pods", "a", "p2", pod("Pending"))
		charge(w, "a", "q", "count/deployments.apps", "1")
		w.Set("deployments.apps", "a", "d", `{}`)
		w.Set("configmaps", "a", "c", `{"data":{"a":"b"}}`)
		w.Set("pods", "b", "p", "")
		controllertest.Advance(time.Second)
		if got := w.Calls(); len(got) > 0 {
			t.Errorf("without reason: %v", got)
		}

		w.Set("pods", "a", "p", pod("Succeeded"))
		controllertest.Advance(time.Second)
		uses(w, "a", "q", "pods", "1", "requests.cpu", "100m", "configmaps", "1", "count/deployments.apps", "1")
		w.Set("deployments.apps", "a", "d", "")
		w.Set("configmaps", "a", "c", "")
		w.Set("pods", "a", "p2", "")
		controllertest.Advance(time.Second)
		uses(w, "a", "q", "pods", "0", "requests.cpu", "0", "configmaps", "0", "count/deployments.apps", "0")

		// It limits something else, and then it does not any more.
		w.Set("services", "a", "s", `{"spec":{"type":"ClusterIP"}}`)
		w.Set(quotasStorage, "a", "q", limit("services", "5", "count/pods", "7"))
		controllertest.Advance(time.Second)
		uses(w, "a", "q", "services", "1", "count/pods", "1")
		if n := w.Cache.Watchers("configmaps"); n != 0 {
			t.Errorf("%d watches of what no quota limits", n)
		}
		w.Set(quotasStorage, "a", "q", "")
		controllertest.Advance(time.Second)
		if n := w.Cache.Watchers("services"); n != 0 {
			t.Errorf("%d watches of what no quota limits any more", n)
		}
	}, runQuotas(0))
}

// TestQuotaThatAClientWrites: where the client's write comes between a count and the write of the status, the next count waits
// as after any write of a client.
func TestQuotaThatAClientWrites(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Early = func(method, path string) {
			if method != http.MethodPut {
				return
			}
			w.Early = nil
			w.Change(quotasStorage, "a", "q", func(text string) string {
				return strings.Replace(text, `"status":{}`, `"status":{"hard":{"pods":"5"},"used":{"pods":"0"}}`, 1)
			})
		}
		w.Set("pods", "a", "p", `{"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`)
		w.Set(quotasStorage, "a", "q", strings.Replace(limit("pods", "5"), "{", `{"status":{},`, 1))
		controllertest.Advance(settled + settled/2)
		uses(w, "a", "q", "pods", "0")
		controllertest.Advance(settled)
		uses(w, "a", "q", "pods", "1")
	}, runQuotas(settled))
}

// TestQuotaWhoseStatusAClientWrote: the controller does not change a status for three seconds after a client has written it. It
// does not wait after writes by admission or by itself, after writes with a time in the future, or if its switch was named.
func TestQuotaWhoseStatusAClientWrote(t *testing.T) {
	quotaOf := func(manager string, at time.Time) string {
		return fmt.Sprintf(`{"metadata":{"managedFields":[{"manager":%q,"operation":"Update","apiVersion":"v1","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:status":{}},"subresource":"status"}]},`+
			`"spec":{"hard":{"pods":"5"}},"status":{"hard":{"pods":"5"},"used":{"pods":"0"}}}`, manager, at.UTC().Format(time.RFC3339))
	}
	for _, c := range []struct {
		manager string
		ahead   time.Duration
		settle  time.Duration
		waits   bool
	}{
		{"kubectl", 0, settled, true},
		{"kubectl", time.Hour, settled, false},
		{"kubectl", 0, 0, false},
		{admissionManager, 0, settled, false},
		{"kube-controller-manager", 0, settled, false},
	} {
		controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
			w.Set("pods", "a", "p", `{"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`)
			w.Set(quotasStorage, "a", "q", quotaOf(c.manager, time.Now().Add(c.ahead)))
			controllertest.Advance(2 * time.Second)
			counted := "1"
			if c.waits {
				counted = "0"
			}
			uses(w, "a", "q", "pods", counted)
			controllertest.Advance(3 * time.Second)
			uses(w, "a", "q", "pods", "1")
		}, runQuotas(c.settle))
	}
}

// TestQuotasOfQuotas: the deletion of the last quota that limits quotas does not end the
// controller's own watch of them.
func TestQuotasOfQuotas(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set(quotasStorage, "a", "q", limit("resourcequotas", "2"))
		controllertest.Advance(time.Second)
		uses(w, "a", "q", "resourcequotas", "1")
		w.Set(quotasStorage, "a", "q", "")
		controllertest.Advance(time.Second)
		w.Set(quotasStorage, "a", "q2", limit("pods", "5"))
		controllertest.Advance(time.Second)
		uses(w, "a", "q2", "pods", "0")
	}, runQuotas(0))
}

// TestQuotasAgain: everything is counted again after some time, as what goes may be missed
// and statuses be written by others.
func TestQuotasAgain(t *testing.T) {
	for every, lasts := range map[time.Duration]time.Duration{0: 5 * time.Minute, time.Minute: time.Minute, -1: time.Hour} {
		controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
			w.Set(quotasStorage, "a", "q", limit("secrets", "5"))
			controllertest.Advance(10 * time.Second)
			charge(w, "a", "q", "secrets", "4")
			controllertest.Advance(lasts - 11*time.Second)
			uses(w, "a", "q", "secrets", "4")
			if every < 0 {
				return
			}
			controllertest.Advance(2 * time.Second)
			uses(w, "a", "q", "secrets", "0")
		}, runQuotas(0, func(q *Controller) { q.Every = every }))
	}
}

// TestQuotasWithOthers: usage that admission records meanwhile is not lost, and objects whose usage it had recorded
// before they existed are found soon after.
func TestQuotasWithOthers(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("secrets", "a", "s1", `{}`)
		w.Set("secrets", "a", "s2", `{}`)
		w.Set(quotasStorage, "a", "q", limit("secrets", "5"))
		controllertest.Advance(time.Second)
		w.Early = func(method, _ string) { // a secret is admitted while the quota is counted
			w.Early = nil
			charge(w, "a", "q", "secrets", "3")
		}
		w.Set("secrets", "a", "s1", "")
		controllertest.Advance(2 * time.Second)
		uses(w, "a", "q", "secrets", "1") // it was not there yet
		w.Set("secrets", "a", "s3", `{}`)
		controllertest.Advance(10 * time.Second)
		uses(w, "a", "q", "secrets", "2")

		// An object that is admitted while the limit is unknown is stored after the count.
		w.Set(quotasStorage, "b", "q", limit("secrets", "5"))
		controllertest.Advance(time.Second)
		w.Set("secrets", "b", "s1", `{}`)
		controllertest.Advance(10 * time.Second)
		uses(w, "b", "q", "secrets", "1")

		w.Refuse = func(string, string) error { return errors.New("no") }
		w.Set("secrets", "a", "s3", "")
		w.Calls()
		controllertest.Advance(time.Minute)
		if got := w.Calls(); len(got) < 3 || len(got) > 8 {
			t.Errorf("tried %d times in a minute", len(got))
		}
		w.Refuse = nil
		controllertest.Advance(time.Minute)
		uses(w, "a", "q", "secrets", "1")
	}, runQuotas(0))
}

// TestQuotasSettle: a quota that is new has no status for a while.
func TestQuotasSettle(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set(quotasStorage, "a", "q", limit("secrets", "5"))
		controllertest.Advance(900 * time.Millisecond)
		if got := w.Calls(); len(got) > 0 {
			t.Errorf("too early: %v", got)
		}
		controllertest.Advance(200 * time.Millisecond)
		uses(w, "a", "q", "secrets", "0")
	}, runQuotas(time.Second))
}

// TestQuotasOfMany: a client that keeps deleting objects has the namespace counted no more often than
// once per settling time, and other namespaces are counted meanwhile.
func TestQuotasOfMany(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set(quotasStorage, "a", "q", limit("secrets", "5"))
		controllertest.Advance(time.Second)
		counted := 0
		w.Early = func(string, string) { counted++ }
		for i := range 2000 {
			name := fmt.Sprint("s", i)
			w.Set("secrets", "a", name, `{}`)
			charge(w, "a", "q", "secrets", fmt.Sprint(i+2))
			w.Set("secrets", "a", name, "")
			// Never a part of a second: what counts begins at no moment at which this writes, which
			// would have it lose to a charge and count again.
			time.Sleep(5003 * time.Microsecond)
		}
		controllertest.Advance(10 * time.Second)
		uses(w, "a", "q", "secrets", "0")
		if counted > 10 {
			t.Errorf("counted %d times in ten seconds", counted)
		}
	}, runQuotas(time.Second))
}

// TestQuotasRest: a namespace that takes long to count is not counted for five times as long.
func TestQuotasRest(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		var counted atomic.Int64
		w.Early = func(string, string) {
			counted.Add(1)
			time.Sleep(time.Second)
		}
		w.Set(quotasStorage, "a", "q", limit("secrets", "5"))
		w.Set(quotasStorage, "b", "q", limit("secrets", "5"))
		controllertest.Advance(20 * time.Second)
		counted.Store(0)
		for range 120 { // a minute
			w.Set("secrets", "a", "s", `{}`)
			charge(w, "a", "q", "secrets", "1")
			w.Set("secrets", "a", "s", "")
			time.Sleep(500 * time.Millisecond)
		}
		if n := counted.Load(); n < 5 || n > 11 {
			t.Errorf("counted %d times in a minute", n)
		}
		controllertest.Advance(20 * time.Second)
		uses(w, "a", "q", "secrets", "0")
	}, runQuotas(0))
}

// TestQuotasServedAnew: the controller keeps watching a resource that is served anew because its definition
// has changed.
func TestQuotasServedAnew(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("secrets", "a", "s", `{}`)
		w.Set(quotasStorage, "a", "q", limit("secrets", "5"))
		w.Set(quotasStorage, "b", "q", limit("secrets", "5", "configmaps", "3"))
		controllertest.Advance(10 * time.Second)
		for range 2 {
			w.Cache.End("secrets")
			controllertest.Advance(10 * time.Second)
		}
		w.Set("secrets", "a", "s", "")
		controllertest.Advance(10 * time.Second)
		uses(w, "a", "q", "secrets", "0")
		if n := w.Cache.Watchers("secrets") + w.Cache.Watchers("configmaps"); n != 2 {
			t.Errorf("%d watches of two resources", n)
		}
	}, runQuotas(0))
}

type otherServers []documents.Resource

func (o otherServers) Resources() ([]documents.Resource, []schema.GroupVersion) { return o, nil }

func (otherServers) Serves(schema.GroupVersion) bool { return false }

func (otherServers) OfKind(schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	return what, false, false
}

// far is a world some of whose objects are at another server.
type far struct {
	*controllertest.FakeAPI
	requests int
	items    int // in each page; less than 0: the server does not answer
	pages    int
}

func (f *far) Call(ctx context.Context, agent, method, path, contentType string, body, into any) error {
	controllertest.After()
	if !strings.HasPrefix(path, "/apis/away.example.com/v1/namespaces/a/widgets?") {
		return f.FakeAPI.Call(ctx, agent, method, path, contentType, body, into)
	}
	f.requests++
	if f.items < 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	list := map[string]any{"items": make([]struct{}, f.items), "metadata": map[string]any{}}
	if f.pages--; f.pages > 0 {
		list["metadata"] = map[string]any{"continue": "more"}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// TestQuotasElsewhere: objects of other servers are counted page by page; a server that does not
// answer is in backoff for a while, and does not delay other quotas for long.
func TestQuotasElsewhere(t *testing.T) {
	const widgets = "count/widgets.away.example.com"
	resource := documents.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "away.example.com", Version: "v1", Resource: "widgets"}, Namespaced: true, Verbs: []string{"list"}}
	f := &far{items: 3, pages: 2}
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set(quotasStorage, "a", "q", limit(widgets, "9", "secrets", "1"))
		controllertest.Advance(time.Second)
		uses(w, "a", "q", widgets, "6", "secrets", "0")
		f.items, f.requests = -1, 0
		for range 7 { // 210 seconds
			w.Set("secrets", "a", "s", `{}`)
			charge(w, "a", "q", "secrets", "1")
			w.Set("secrets", "a", "s", "")
			controllertest.Advance(30 * time.Second)
			uses(w, "a", "q", widgets, "6", "secrets", "0")
		}
		if f.requests != 1 {
			t.Errorf("%d requests to a server that does not answer", f.requests)
		}
		f.items, f.pages, f.requests = 1, 1000, 0
		controllertest.Advance(10 * time.Minute)
		uses(w, "a", "q", widgets, "6", "secrets", "0")
		if f.requests > 3*remoteMaxPages {
			t.Errorf("%d requests for more objects than can be counted", f.requests)
		}
		f.items, f.pages, f.requests = 2, 1, 0
		controllertest.Advance(10 * time.Minute)
		uses(w, "a", "q", widgets, "2", "secrets", "0")
		f.requests = 0
		for range 20 { // 10 seconds
			w.Set("secrets", "a", "s", `{}`)
			w.Set("secrets", "a", "s", "")
			controllertest.Advance(500 * time.Millisecond)
		}
		if f.requests > 2 {
			t.Errorf("%d requests in ten seconds", f.requests)
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		f.FakeAPI = w
		return runQuotas(0, func(q *Controller) { q.API, q.Remote = f, otherServers{resource} })(w)
	})
}
