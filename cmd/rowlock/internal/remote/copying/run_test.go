package copying_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"a"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"replicas":3,"readyReplicas":2}}`

// TestSecondRun: an existing equal object is left alone; a field that another manager owns with another
// value is a conflict, and overwritten only on request.
func TestSecondRun(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	from := source{{"configmaps", []string{configMap("x", ""), configMap("y", ""), configMap("kube-root-ca.crt", "")}}}
	wantTotal(t, "first", s.run(t, from, copying.Options{}), 2, 0, 0, 1, 0, 0)
	wantTotal(t, "second", s.run(t, from, copying.Options{}), 0, 0, 2, 1, 0, 0)
	const path = "/api/v1/namespaces/a/configmaps/x"
	s.apply(t, path, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"},"data":{"k":"mine"}}`)
	r := s.run(t, from, copying.Options{})
	wantTotal(t, "a conflict", r, 0, 0, 1, 1, 1, 0)
	wantDetail(t, r, copying.Conflict, "configmaps", "x", "other")
	wantTotal(t, "a trial of taking it", s.run(t, from, copying.Options{Overwrite: true, DryRun: true}), 0, 1, 1, 1, 0, 0)
	if got := field(s.get(t, path), "data", "k"); got != "mine" {
		t.Errorf("what another owns is %s", got)
	}
	wantTotal(t, "overwritten", s.run(t, from, copying.Options{Overwrite: true}), 0, 1, 1, 1, 0, 0)
	if got := field(s.get(t, path), "data", "k"); got != "v" {
		t.Errorf("what was to be overwritten is %s", got)
	}
}

// TestWithStatus: the status is written on request, by the same rule as other fields:
// those of other managers stay.
func TestWithStatus(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	from := source{{"deployments.apps", []string{deployment}}}
	const path = "/apis/apps/v1/namespaces/a/deployments/web"
	wantTotal(t, "without", s.run(t, from, copying.Options{}), 1, 0, 0, 0, 0, 0)
	if got := field(s.get(t, path), "status", "replicas"); got != "<nil>" {
		t.Errorf("the status has %s replicas, and was not asked for", got)
	}
	wantTotal(t, "with", s.run(t, from, copying.Options{WithStatus: true}), 0, 1, 0, 0, 0, 0)
	if got := field(s.get(t, path), "status", "readyReplicas"); got != "2" {
		t.Errorf("the status has %s ready replicas", got)
	}
	wantTotal(t, "again", s.run(t, from, copying.Options{WithStatus: true}), 0, 0, 1, 0, 0, 0)
	s.apply(t, path+"/status", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"status":{"replicas":7}}`)
	r := s.run(t, from, copying.Options{WithStatus: true})
	wantTotal(t, "a controller's", r, 0, 0, 0, 0, 1, 0)
	wantDetail(t, r, copying.Conflict, "deployments.apps", "web", "not its status: ")
	if got := field(s.get(t, path), "status", "replicas"); got != "7" {
		t.Errorf("the status of the controller was overwritten: %s", got)
	}
	wantTotal(t, "overwritten", s.run(t, from, copying.Options{WithStatus: true, Overwrite: true}), 0, 1, 0, 0, 0, 0)
	if got := field(s.get(t, path), "status", "replicas"); got != "3" {
		t.Errorf("the status has %s replicas", got)
	}
}

// TestChosen: selectors, namespaces and resources choose, and nothing else comes.
func TestChosen(t *testing.T) {
	t.Parallel()
	s := newTarget(t)
	labelled := func(name, namespace, label string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,"labels":{"app":%q}}}`, name, namespace, label)
	}
	from := source{
		{"namespaces", []string{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","labels":{"app":"x"}}}`, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}`}},
		{"configmaps", []string{labelled("one", "a", "x"), labelled("two", "a", "y"), labelled("three", "b", "x")}},
		{"secrets", []string{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"a","labels":{"app":"x"}}}`}},
		{"priorityclasses.scheduling.k8s.io", []string{`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"p","labels":{"app":"x"}},"value":1}`}},
	}
	selector, err := labels.Parse("app=x")
	if err != nil {
		t.Fatal(err)
	}
	r := s.run(t, from, copying.Options{Namespaces: []string{"a"}, Selector: selector, Exclude: []string{"secrets"}})
	wantTotal(t, "chosen", r, 2, 0, 0, 0, 0, 0)
	if s.get(t, "/api/v1/namespaces/a/configmaps/one") == nil || s.get(t, "/api/v1/namespaces/a/configmaps/two") != nil || s.get(t, "/api/v1/namespaces/b") != nil {
		t.Error("another than was chosen was copied")
	}
	wantTotal(t, "by a group", s.run(t, from, copying.Options{Resources: []string{"*.scheduling.k8s.io"}}), 1, 0, 0, 0, 0, 0)
}

// TestAddresses: a Service whose address or ports are taken gets others, which the report notes; an existing
// one keeps its own.
func TestAddresses(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	// These are of the parts from which nothing is given out by chance, as another service would get here.
	service := func(name, ip string, port int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q,"namespace":"a"},"spec":{"type":"NodePort","clusterIP":%q,"clusterIPs":[%q],"ports":[{"port":80,"protocol":"TCP","nodePort":%d}]}}`, name, ip, ip, port)
	}
	wantTotal(t, "first", s.run(t, source{{"services", []string{service("old", "10.96.0.98", 30013)}}}, copying.Options{}), 1, 0, 0, 0, 0, 0)
	from := source{{"services", []string{service("taken", "10.96.0.98", 30013), service("far", "192.168.200.1", 30012), service("free", "10.96.0.99", 30011)}}}
	r := s.run(t, from, copying.Options{})
	wantTotal(t, "taken and out of range", r, 3, 0, 0, 0, 0, 0)
	wantDetail(t, r, copying.Noted, "services", "taken", "gets another address: 10.96.0.98 is not free")
	wantDetail(t, r, copying.Noted, "services", "taken", "gets other node ports")
	wantDetail(t, r, copying.Noted, "services", "far", "gets another address")
	ip := func(name string) string {
		return field(s.get(t, "/api/v1/namespaces/a/services/"+name), "spec", "clusterIP")
	}
	port := func(name string) string {
		return field(s.get(t, "/api/v1/namespaces/a/services/"+name), "spec", "ports", 0, "nodePort")
	}
	taken, far := ip("taken"), ip("far")
	if taken == "10.96.0.98" || !strings.HasPrefix(taken, "10.") || port("taken") == "30013" || !strings.HasPrefix(far, "10.") || port("far") != "30012" || ip("free") != "10.96.0.99" || port("free") != "30011" {
		t.Errorf("taken has %s and %s, far %s and %s, free %s and %s", taken, port("taken"), far, port("far"), ip("free"), port("free"))
	}
	r = s.run(t, from, copying.Options{})
	if r.Total.Created+r.Total.Conflicts+r.Total.Failed > 0 || ip("taken") != taken || ip("far") != far {
		t.Errorf("a second run: %+v, %+v", r.Total, r.Details)
	}
	wantDetail(t, r, copying.Noted, "services", "far", "has another address in the target, and keeps it: "+far+" instead of 192.168.200.1")
}

// TestInterrupted: an interrupted run reports its results, and the next one does the rest.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	var all []string
	for i := range 60 {
		all = append(all, configMap(fmt.Sprint("c", i), ""))
	}
	from := source{{"configmaps", all}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := copying.Run(ctx, s.c, from, copying.Options{Workers: 2, Progress: func(n int64) {
		if n == 20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || r.Total.Created < 20 || r.Total.Created > 30 {
		t.Fatalf("interrupted: %v, %+v", err, r.Total)
	}
	again := s.run(t, from, copying.Options{})
	if again.Total.Unchanged < r.Total.Created || again.Total.Created+again.Total.Unchanged != 60 {
		t.Errorf("the rest: %+v after %+v", again.Total, r.Total)
	}
}

// TestLostAnswers: an object is written once, however often the answer is lost, and is ours.
// One that cannot be applied, as a list of it has a key twice, is created.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E","value":"1"},{"name":"E","value":"2"}]}]}}`
	s.run(t, source{{"pods", []string{pod}}}, copying.Options{}) // with its defaults it is what a source would have
	full := s.get(t, "/api/v1/namespaces/a/pods/p")
	if field(full, "spec", "containers", 0, "env", 1, "value") != "2" {
		t.Fatalf("an object with a key twice was not created: %v", full)
	}
	other := newTarget(t, "a")
	create := other.Inject(rowlocktest.Fault{Verb: "create", Resource: "pods", Times: 1, Effect: rowlocktest.LoseAnswer()})
	patch := other.Inject(rowlocktest.Fault{Verb: "patch", Resource: "configmaps", Times: 1, Effect: rowlocktest.LoseAnswer()})
	r := other.run(t, source{{"configmaps", []string{configMap("x", "")}}, {"pods", []string{asJSON(t, full)}}}, copying.Options{})
	if create.Hits() != 1 || patch.Hits() != 1 {
		t.Fatalf("%d creates and %d applies were lost", create.Hits(), patch.Hits())
	}
	wantTotal(t, "answers that were lost", r, 2, 0, 0, 0, 0, 0)
}
