package flow_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/request"
)

// wide returns a cluster whose classifier knows the stored objects, with 600 ConfigMaps, 150 of them in a
// namespace b.
func wide(t testing.TB) *cluster {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	in := cache.New(catalogue)
	c := &cluster{Classifier: flow.New(in, flow.Config{Read: 400, Write: 200, Catalogue: catalogue}), cache: in}
	for i := range 600 {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), Namespace: "a"}}
		if i%4 == 0 {
			o.Namespace = "b"
		}
		store(t, c, "configmaps", o)
	}
	return c
}

func TestWidths(t *testing.T) {
	c := wide(t)
	somebody := user("x", "system:authenticated")
	ask := func(method, target string) *seats.Request {
		t.Helper()
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		info, err := request.Parse(method, u)
		if err != nil {
			t.Fatal(err)
		}
		r := &seats.Request{}
		c.AssignSeats(r, c.Classify(somebody, info), somebody, info)
		return r
	}
	const all, one = "/api/v1/configmaps", "/api/v1/namespaces/b/configmaps"
	for _, tc := range []struct {
		target string
		seats  int
	}{
		{all, 6}, {one, 2}, {"/api/v1/namespaces/none/configmaps", 1}, {"/api/v1/pods", 1}, {"/version", 1}, {"/apis/example.com/v1/things", 1},
		{all + "?limit=100", 2}, {all + "?limit=100&resourceVersion=0", 6}, {all + "?limit=0", 6}, {all + "?limit=5000", 10}, {all + "?limit=100&labelSelector=a", 7},
		{all + "?limit=100&shardSelector=a", 7}, {all + "?labelSelector=a", 6}, {all + "?resourceVersion=7&resourceVersionMatch=Exact", 10}, {all + "?resourceVersion=7&resourceVersionMatch=NotOlderThan", 6},
		{all + "?fieldSelector=metadata.name%3Dx", 1}, {one + "/x", 1}, {all + "?continue=x&limit=100", 2},
		{all + "?watch=1", 1}, {all + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 6}, {one + "?watch=1&sendInitialEvents=false", 1},
	} {
		if r := ask("GET", tc.target); r.Seats != tc.seats || r.Extra != 0 {
			t.Errorf("%s: %d seats, want %d; %d extra", tc.target, r.Seats, tc.seats, r.Extra)
		}
	}

	if r := ask("POST", one); r.Extra != 0 {
		t.Errorf("nobody watches: %d extra seats", r.Extra)
	}
	for i := range 250 {
		scope := cache.Scope{Namespace: []string{"", "a", "b"}[i%3]} // 84, 83, 83
		w, _ := c.cache.WatchNow("configmaps", scope)
		defer w.Stop()
	}
	for target, watchers := range map[string]int{one: 84 + 83, "/api/v1/namespaces/none/configmaps": 84, "/api/v1/namespaces/b/pods": 0, "/api/v1/namespaces/b/serviceaccounts/x/token": 0} {
		r := ask("POST", target)
		wanted := (watchers + 9) / 10
		if r.Seats != 1 || r.Extra != min(wanted, 10) || r.Extra > 0 && r.ExtraFor != time.Duration(wanted)*5*time.Millisecond/time.Duration(r.Extra) {
			t.Errorf("%s with %d watchers: %d seats, %d more for %s", target, watchers, r.Seats, r.Extra, r.ExtraFor)
		}
	}

	// A level with queues has narrower ones: 40 seats, a hand of eight.
	fill(t, c, levels, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "catch-all"}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: "Limited", Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To[int32](1), LimitResponse: flowcontrolv1.LimitResponse{
			Type: "Queue", Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 8, HandSize: 8, QueueLengthLimit: 5},
		}},
	}}, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "others"}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: "Limited", Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To[int32](14), LimitResponse: flowcontrolv1.LimitResponse{Type: "Reject"}},
	}})
	if r := ask("GET", all); r.Seats != 5 {
		t.Errorf("in a level with 40 seats: %d", r.Seats)
	}
}

func TestPatience(t *testing.T) {
	c := flow.New(cache.New(nil), flow.Config{Patience: 7 * time.Second})
	now := time.Now()
	for until, want := range map[time.Time]time.Duration{now.Add(time.Minute): 15 * time.Second, now.Add(time.Hour): time.Minute, {}: 7 * time.Second} {
		if got := c.Patience(now, until); got != want {
			t.Errorf("until %s: %s, want %s", until, got, want)
		}
	}
}

// decide is all that is decided of a request, from its class to its end.
func decide(t testing.TB, c *cluster, r *seats.Request, info *request.Info) {
	class := c.Classify(jane, info)
	*r = seats.Request{User: jane.Name}
	c.AssignSeats(r, class, jane, info)
	err := c.Seats.Enter(t.Context(), r)
	if class.Entered(r, err); err != nil {
		t.Fatal(err)
	}
	c.Seats.Leave(r)
	class.Left(false, time.Millisecond)
}

var (
	jane = user("jane", "system:authenticated")
	jobs = []struct {
		name string
		info *request.Info
	}{
		{"get", &request.Info{IsResource: true, Verb: "get", Group: "", Version: "v1", Resource: "configmaps", Namespace: "a", Name: "c1"}},
		{"list", &request.Info{IsResource: true, Verb: "list", Group: "", Version: "v1", Resource: "configmaps"}},
		{"update", &request.Info{IsResource: true, Verb: "update", Group: "", Version: "v1", Resource: "configmaps", Namespace: "a", Name: "c1"}},
	}
)

// usual returns a cluster with all objects that are there from the start.
func usual(t testing.TB) *cluster {
	c := wide(t)
	complete(t, c)
	return c
}

func TestDecisionsAllocateNothing(t *testing.T) {
	c, r := usual(t), &seats.Request{}
	for _, job := range jobs {
		if n := testing.AllocsPerRun(500, func() { decide(t, c, r, job.info) }); n != 0 {
			t.Errorf("a decision about a %s allocates %v times", job.name, n)
		}
	}
}

func BenchmarkDecision(b *testing.B) {
	c, r := usual(b), &seats.Request{}
	for _, job := range jobs {
		b.Run(job.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decide(b, c, r, job.info)
			}
		})
	}
}
