package flow_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/sqlstore"
)

// cluster is a classifier with the cache that it follows.
type cluster struct {
	*flow.Classifier
	cache    *cache.Cache
	revision int64
}

func newCluster() *cluster {
	c := cache.New(kinds.NewCatalogue(builtin.Resources()))
	return &cluster{Classifier: flow.New(c, flow.Config{Read: 400, Write: 200}), cache: c}
}

const (
	schemas = "flowschemas.flowcontrol.apiserver.k8s.io"
	levels  = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
)

// remove deletes an object.
func (c *cluster) remove(storage, name string) {
	old := c.cache.Get(storage, "", name)
	c.revision++
	c.cache.Apply([]sqlstore.Change{{
		Row:          sqlstore.Row{Key: sqlstore.Key{Resource: storage, Name: name}, Revision: c.revision, Value: old.JSON(), Deleted: true},
		PrevRevision: old.Revision, PrevValue: old.JSON(),
	}})
}

// fill writes objects to the cache.
func fill[T kinds.Object](t testing.TB, c *cluster, storage string, objects ...T) {
	t.Helper()
	kind := map[string]string{schemas: "FlowSchema", levels: "PriorityLevelConfiguration"}[storage]
	for _, o := range objects {
		o.GetObjectKind().SetGroupVersionKind(flowcontrolv1.SchemeGroupVersion.WithKind(kind))
		if o.GetUID() == "" {
			o.SetUID(types.UID("uid-" + o.GetName()))
		}
		store(t, c, storage, o)
	}
}

// store writes an object to the cache.
func store(t testing.TB, c *cluster, storage string, o kinds.Object) {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c.revision++
	change := sqlstore.Change{Row: sqlstore.Row{Key: sqlstore.Key{Resource: storage, Namespace: o.GetNamespace(), Name: o.GetName()}, Revision: c.revision, Value: data}}
	if old := c.cache.Get(storage, o.GetNamespace(), o.GetName()); old != nil {
		change.PrevRevision, change.PrevValue = old.Revision, old.JSON()
	}
	c.cache.Apply([]sqlstore.Change{change})
}

// complete gives a cluster the objects that are there from the start.
func complete(t testing.TB, c *cluster) *cluster {
	fill(t, c, schemas, append(flowcontrol.MandatorySchemas(), flowcontrol.SuggestedSchemas(release.Default)...)...)
	fill(t, c, levels, append(flowcontrol.MandatoryLevels(), flowcontrol.SuggestedLevels()...)...)
	return c
}

func user(name string, groups ...string) *authx.Identity {
	return &authx.Identity{Name: name, Groups: groups}
}

func TestClassify(t *testing.T) {
	c := complete(t, newCluster())
	resource := func(verb, group, resource, namespace string) *request.Info {
		return &request.Info{IsResource: true, Verb: verb, Group: group, Resource: resource, Namespace: namespace}
	}
	path := func(path string) *request.Info { return &request.Info{Verb: "get", Path: path} }
	const all = "system:authenticated"
	for _, tc := range []struct {
		name          string
		user          *authx.Identity
		info          *request.Info
		schema, level string
	}{
		{"administrator", user("admin", "system:masters", all), resource("list", "", "pods", ""), "exempt", "exempt"},
		{"probe", user("system:anonymous", "system:unauthenticated"), path("/readyz"), "probes", "exempt"},
		{"single probe", user("x", all), path("/livez/ping"), "probes", "exempt"},
		{"not a probe", user("x", all), path("/livezz"), "global-default", "global-default"},
		{"stranger", user("system:anonymous", "system:unauthenticated"), path("/version"), "global-default", "global-default"},
		{"kubelet's lease", user("system:node:a", "system:nodes", all), resource("update", "coordination.k8s.io", "leases", "kube-node-lease"), "system-node-high", "node-high"},
		{"kubelet's node", user("system:node:a", "system:nodes", all), resource("get", "", "nodes", ""), "system-node-high", "node-high"},
		{"kubelet's pods", user("system:node:a", "system:nodes", all), resource("list", "", "pods", ""), "system-nodes", "system"},
		{"scheduler", user("system:kube-scheduler", all), resource("list", "", "pods", ""), "kube-scheduler", "workload-high"},
		{"scheduler's leader election", user("system:kube-scheduler", all), resource("update", "coordination.k8s.io", "leases", "kube-system"), "system-leader-election", "leader-election"},
		{"account of the system", user("system:serviceaccount:kube-system:x", "system:serviceaccounts", all), resource("list", "", "pods", "a"), "kube-system-service-accounts", "workload-high"},
		{"account with a similar namespace", user("system:serviceaccount:kube-systemx:x", "system:serviceaccounts", all), resource("list", "", "pods", "a"), "service-accounts", "workload-low"},
		{"person", user("jane", all), resource("get", "apps", "deployments", "a"), "global-default", "global-default"},
		{"nobody", nil, path("/version"), "catch-all", "catch-all"},
	} {
		got := c.Classify(tc.user, tc.info)
		if got.Schema != tc.schema || got.Level != tc.level || got.Exempt != (tc.level == "exempt") {
			t.Errorf("%s: %s, %s, exempt %t; want %s, %s", tc.name, got.Schema, got.Level, got.Exempt, tc.schema, tc.level)
		}
		if schema, level := got.UIDs(); schema[0] != "uid-"+tc.schema || level[0] != "uid-"+tc.level {
			t.Errorf("%s: UIDs %s %s", tc.name, schema, level)
		}
	}
}

// TestChanges: changes take effect, a schema without its level does not apply, and mandatory objects cannot
// be removed.
func TestChanges(t *testing.T) {
	c := complete(t, newCluster())
	jane, pods := user("jane", "system:authenticated"), &request.Info{IsResource: true, Verb: "list", Resource: "pods", Subresource: "log", Namespace: "a"}
	want := func(schema string) {
		t.Helper()
		if got := c.Classify(jane, pods); got.Schema != schema {
			t.Errorf("falls under %s, want %s", got.Schema, schema)
		}
	}
	mine := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: flowcontrolv1.FlowSchemaSpec{
		MatchingPrecedence:         8999,
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "own"},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects:      []flowcontrolv1.Subject{{Kind: "User", User: &flowcontrolv1.UserSubject{Name: "jane"}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods/log"}, Namespaces: []string{"a", "b"}}},
		}},
	}}
	fill(t, c, schemas, mine)
	want("global-default")
	fill(t, c, levels, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: "Limited"}})
	want("mine")
	mine.Spec.Rules[0].ResourceRules[0].Namespaces = []string{"b"}
	fill(t, c, schemas, mine)
	want("global-default")
	c.remove(schemas, "mine")
	c.remove(schemas, "global-default")
	want("catch-all")
	c.remove(schemas, "catch-all")
	want("catch-all")
}

func TestCounts(t *testing.T) {
	c := newCluster()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.Collectors()...)
	jane, version := user("x", "system:authenticated"), &request.Info{Verb: "get", Path: "/version"}
	class := c.Classify(jane, version)
	ask := func() *seats.Request {
		r := &seats.Request{User: jane.Name}
		c.AssignSeats(r, class, jane, version)
		return r
	}
	r := ask()
	if err := c.Seats.Enter(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	class.Entered(r, nil)
	want := func(values map[string]float64) {
		t.Helper()
		for name, want := range values {
			if got := sum(t, registry, "apiserver_flowcontrol_"+name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	}
	want(map[string]float64{"current_executing_requests": 1, "current_executing_seats": 1, "nominal_limit_seats": 600, "current_limit_seats": 600})
	c.Seats.Leave(r)
	class.Left(false, time.Second)
	wide := ask()
	wide.Seats = 600
	if err := c.Seats.Enter(t.Context(), wide); err != nil {
		t.Fatal(err)
	}
	r = ask()
	err := c.Seats.Enter(t.Context(), r)
	if err != seats.Concurrency {
		t.Errorf("one too many: %v", err)
	}
	class.Entered(r, err)
	c.Seats.Leave(wide)
	want(map[string]float64{"current_executing_requests": 0, "dispatched_requests_total": 2, "rejected_requests_total": 1, "request_wait_duration_seconds": 2, "request_execution_seconds": 1})
	for name, series := range map[string]int{
		"priority_level_seat_utilization": 2, "priority_level_request_utilization": 4, "demand_seats": 2, "read_vs_write_current_requests": 4,
		"current_r": 2, "dispatch_r": 2, "latest_s": 2, "next_s_bounds": 0, "next_discounted_s_bounds": 0, "request_dispatch_no_accommodation_total": 0,
	} {
		if got := count(t, registry, "apiserver_flowcontrol_"+name); got != series {
			t.Errorf("%s has %d series, want %d", name, got, series)
		}
	}
	if spent := sum(t, registry, "apiserver_flowcontrol_demand_seats"); spent <= 0 {
		t.Errorf("demand for seats is known for %v ns", spent)
	}
}

// TestQueuedCounts: metrics of waiting requests.
func TestQueuedCounts(t *testing.T) {
	c := usual(t)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.Collectors()...)
	jane, info := user("x", "system:authenticated"), &request.Info{Verb: "get", Path: "/version"}
	class := c.Classify(jane, info)
	var states []seats.State
	ask := func(n int) *seats.Request {
		r := &seats.Request{User: jane.Name}
		c.AssignSeats(r, class, jane, info)
		r.Seats, r.Patience = n, time.Minute
		return r
	}
	states, _ = c.Seats.States(seats.OfLevels)
	at := slices.IndexFunc(states, func(s seats.State) bool { return s.Name == class.Level })
	wide, next := ask(states[at].Limit), ask(1)
	if err := c.Seats.Enter(t.Context(), wide); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- c.Seats.Enter(t.Context(), next) }()
	for count(t, registry, "apiserver_flowcontrol_next_s_bounds") == 0 {
		runtime.Gosched()
	}
	for name, series := range map[string]int{"next_s_bounds": 2, "next_discounted_s_bounds": 2, "request_dispatch_no_accommodation_total": 1, "current_inqueue_requests": 1} {
		if got := count(t, registry, "apiserver_flowcontrol_"+name); got != series {
			t.Errorf("%s has %d series, want %d", name, got, series)
		}
	}
	c.Seats.Leave(wide)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c.Seats.Leave(next)
}

// count returns how many series a metric has.
func count(t *testing.T, g prometheus.Gatherer, name string) int {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return len(f.GetMetric())
		}
	}
	return 0
}

func sum(t *testing.T, g prometheus.Gatherer, name string) (total float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				total += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return total
}
