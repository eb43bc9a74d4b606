package history_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
)

const configmaps = "/api/v1/namespaces/shop/configmaps"

// configmap writes the ConfigMap c with a value, and returns the revision.
func configmap(t *testing.T, s *servertest.Server, verb, value string) string {
	t.Helper()
	path := configmaps
	if verb == "PUT" {
		path += "/c"
	}
	var out metav1.PartialObjectMetadata
	if err := json.Unmarshal(s.Must(verb, path, fmt.Sprintf(`{"metadata":{"name":"c"},"data":{"v":%q}}`, value)), &out); err != nil {
		t.Fatal(err)
	}
	return out.ResourceVersion
}

// written returns when the ConfigMap c was written at a revision, by the clock of the database,
// from which this machine's may differ.
func written(t *testing.T, s *servertest.Server, revision string) time.Time {
	t.Helper()
	return read[history.Revision](t, s, item+"configmaps:c:"+revision).WrittenAt.Time
}

// TestPages: pages of any size have each write once, the newest first, and no more than may be.
func TestPages(t *testing.T) {
	onStores(t, func(t *testing.T, s *servertest.Server) {
		want := []string{configmap(t, s, "POST", "0")}
		for i := range 120 {
			want = append(want, configmap(t, s, "PUT", fmt.Sprint(i+1)))
		}
		slices.Reverse(want)
		for _, size := range []int{0, 7, 100, 500} {
			var got []string
			for more := ""; ; {
				page := read[history.RevisionList](t, s, list("shop", "configmaps", "c", fmt.Sprintf("&limit=%d&continue=%s", size, more)))
				if len(page.Items) > 100 || size > 0 && len(page.Items) > size || size == 0 && len(page.Items) > 50 {
					t.Fatalf("a page of %d where %d were asked for", len(page.Items), size)
				}
				for _, r := range page.Items {
					got = append(got, r.Revision)
				}
				if more = page.Continue; more == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: %d revisions, want %d", size, len(got), len(want))
			}
		}
		all := read[history.RevisionList](t, s, list("shop", "configmaps", "c", "&limit=100"))
		for i, r := range all.Items[:99] {
			if r.Previous != all.Items[i+1].Revision || all.Items[i+1].SupersededBy != r.Revision || !slices.Equal(r.ChangedFields, []string{"data.v"}) {
				t.Errorf("%+v", r)
			}
		}
		middle := all.Items[40].WrittenAt.Time.UTC().Format(time.RFC3339Nano)
		newer := read[history.RevisionList](t, s, list("shop", "configmaps", "c", "&limit=100&since="+middle))
		older := read[history.RevisionList](t, s, list("shop", "configmaps", "c", "&limit=100&until="+middle))
		if len(newer.Items) < 41 || newer.Items[0].Revision != want[0] || newer.Items[len(newer.Items)-1].WrittenAt.Time.Before(all.Items[40].WrittenAt.Time) {
			t.Errorf("since %s there are %d", middle, len(newer.Items))
		}
		if older.Items[0].WrittenAt.Time.After(all.Items[40].WrittenAt.Time) || older.Items[0].Revision > all.Items[39].Revision {
			t.Errorf("until %s the newest is %+v", middle, older.Items[0])
		}
	})
}

// TestBytesOfPages: with large objects a page ends before its number is reached.
func TestBytesOfPages(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil), served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	configmap(t, s, "POST", "")
	for i := range 30 {
		configmap(t, s, "PUT", strings.Repeat(string(rune('a'+i%20)), 900<<10))
	}
	page := read[history.RevisionList](t, s, list("shop", "configmaps", "c", "&limit=100&content=true"))
	if n := len(page.Items); n == 0 || n > 6 || page.Continue == "" {
		t.Errorf("with objects a page has %d", n)
	}
	page = read[history.RevisionList](t, s, list("shop", "configmaps", "c", "&limit=100"))
	if n := len(page.Items); n < 10 || n > 22 || page.Continue == "" {
		t.Errorf("a page has %d", n)
	}
	d := read[history.Difference](t, s, item+page.Items[0].Name+"/diff")
	if len(d.Changes) != 1 || !d.Changes[0].Omitted || d.Changes[0].To != nil {
		t.Errorf("%d changes", len(d.Changes))
	}
}

// TestStates: an object as it was, by a revision of its own, by one of others and by a time.
func TestStates(t *testing.T) {
	onStores(t, func(t *testing.T, s *servertest.Server) {
		first := configmap(t, s, "POST", "1")
		between := written(t, s, first).Add(time.Millisecond).UTC().Format(time.RFC3339Nano)
		time.Sleep(20 * time.Millisecond)
		s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"else"}}`)
		other := fmt.Sprint(s.Store.Applied())
		second := configmap(t, s, "PUT", "2")
		s.Must("DELETE", configmaps+"/c", "")
		last := fmt.Sprint(s.Store.Applied())
		for state, want := range map[string]string{first: first + "=1", other: first + "=1", "at-" + between: first + "=1", second: second + "=2", last: last + "=2"} {
			r := read[history.Revision](t, s, item+"configmaps:c:"+state)
			var c struct{ Data map[string]string }
			if err := json.Unmarshal(r.Content.Raw, &c); err != nil {
				t.Fatal(err)
			}
			if got := r.Revision + "=" + c.Data["v"]; got != want || r.Name != "configmaps:c:"+r.Revision || (r.Change == history.Deleted) != (state == last) {
				t.Errorf("at %s: %s %+v, want %s", state, got, r, want)
			}
		}
		m := read[history.Moment](t, s, root+"/moments/"+between)
		if m.Revision != first || m.WrittenAt == nil {
			t.Errorf("at %s: %+v, want %s", between, m, first)
		}
		if m := read[history.Moment](t, s, root+"/moments/now"); m.Revision != last {
			t.Errorf("now: %+v, want %s", m, last)
		}
		for query, want := range map[string]string{
			second + "/diff": "replace data.v 1 2", second + "/diff?from=" + first: "replace data.v 1 2", first + "/diff?from=" + second: "replace data.v 2 1",
			first + "/diff": "add  <nil> <nil>", last + "/diff": "remove  <nil> <nil>", last + "/diff?from=1": "",
		} {
			d := read[history.Difference](t, s, item+"configmaps:c:"+query)
			var got []string
			for _, c := range d.Changes {
				got = append(got, fmt.Sprintf("%s %s %v %v", c.Op, c.Path, c.From, c.To))
			}
			if strings.Join(got, "; ") != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
	})
}

// TestExpired: history that is no longer kept is a 410 that names the kept part.
func TestExpired(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(stores["memory"](t), retained(time.Millisecond)))
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	first := configmap(t, s, "POST", "1")
	for i := range 5 {
		configmap(t, s, "PUT", fmt.Sprint(i+2))
	}
	before := s.Store.Applied()
	servertest.Eventually(t, func() bool { return s.Store.Floor() >= before })
	refused(t, s, item+"configmaps:c:"+first, http.StatusGone, fmt.Sprint("revision ", s.Store.Floor()))
	refused(t, s, root+"/moments/"+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), http.StatusGone, "oldest")
	got := read[history.RevisionList](t, s, list("shop", "configmaps", "c", ""))
	if len(got.Items) != 1 || got.Items[0].Previous != "" || got.Items[0].ChangedFields != nil || got.Items[0].Managers != nil {
		t.Errorf("%+v", got.Items)
	}
	refused(t, s, item+got.Items[0].Name+"/diff", http.StatusGone, "kept from")
}

// TestDefinitionGone: after their definition is deleted, users that may get custom objects can still read
// their past.
func TestDefinitionGone(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	const crds, path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/a.example/v1/namespaces/shop/things"
	s.Must("POST", crds, `{"metadata":{"name":"things.a.example"},"spec":{"group":"a.example","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	servertest.Eventually(t, func() bool { return s.Do("GET", path, "").Code == 200 })
	s.Must("POST", path, `{"apiVersion":"a.example/v1","kind":"Thing","metadata":{"name":"x"},"v":1}`)
	s.Must("DELETE", crds+"/things.a.example", "")
	servertest.Eventually(t, func() bool { return s.Do("GET", crds+"/things.a.example", "").Code == 404 })
	grant(s, "u", "shop", rule(everyRevision))
	grant(s, "may", "shop", rule(everyRevision), rule("get a.example/things"))
	of := list("shop", "things.a.example", "x", "&content=true")
	if w := s.Do("GET", of, "", "Impersonate-User", "u"); w.Code != http.StatusForbidden {
		t.Errorf("without a right: %d %s", w.Code, w.Body)
	}
	got := read[history.RevisionList](t, s, of, "Impersonate-User", "may")
	if n := len(got.Items); n < 2 || got.Items[0].Change != history.Deleted || got.Items[n-1].Change != history.Created ||
		got.Items[0].Object.Kind != "Thing" || !strings.Contains(string(got.Items[n-1].Content.Raw), `"v":1`) {
		t.Errorf("%+v", got.Items)
	}
}

// TestTable: kubectl has columns that tell what happened.
func TestTable(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil), served)
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	s.Must("POST", configmaps+"?fieldManager=maker", `{"metadata":{"name":"c","annotations":{"openshift.io/requester":"eve"}}}`)
	s.Must("PUT", configmaps+"/c?fieldManager=changer", `{"metadata":{"name":"c","annotations":{"openshift.io/requester":"eve"}},"data":{"a":"1"}}`)
	got := read[metav1.Table](t, s, list("shop", "configmaps", "c", ""), "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	var names []string
	for _, c := range got.ColumnDefinitions[:5] {
		names = append(names, c.Name)
	}
	if strings.Join(names, " ") != "Revision Change When Managers Changed" || len(got.Rows) != 2 {
		t.Fatalf("%v, %d rows", names, len(got.Rows))
	}
	if a, b := got.Rows[0].Cells, got.Rows[1].Cells; a[1] != "update" || a[3] != "changer" || a[4] != "data" || a[6] != "" || b[1] != "create" || b[3] != "maker" || b[4] != "<all>" || b[6] != "eve" {
		t.Errorf("%v, then %v", a, b)
	}
}

// TestDescribed: the group is last, after custom ones, in each form of discovery, with descriptions
// of its kinds; without it there is no trace of it.
func TestDescribed(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t), served)
	s.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"things.z.example"},"spec":{"group":"z.example","scope":"Cluster","names":{"plural":"things","kind":"Thing"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	servertest.Eventually(t, func() bool { return s.Do("GET", "/apis/z.example/v1/things", "").Code == 200 })
	plain := read[metav1.APIGroupList](t, s, "/apis")
	whole := read[apidiscovery.APIGroupDiscoveryList](t, s, "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if n := len(plain.Groups); plain.Groups[n-1].Name != "history.rowlock.dev" || plain.Groups[n-2].Name != "z.example" {
		t.Errorf("the last groups are %s and %s", plain.Groups[n-2].Name, plain.Groups[n-1].Name)
	}
	if n := len(whole.Items); whole.Items[n-1].Name != "history.rowlock.dev" || whole.Items[n-2].Name != "z.example" {
		t.Errorf("the last groups are %s and %s", whole.Items[n-2].Name, whole.Items[n-1].Name)
	}
	if services := s.Must("GET", "/apis/apiregistration.k8s.io/v1/apiservices", ""); strings.Contains(string(services), "history") {
		t.Error("there is an APIService of it")
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(s.Must("GET", "/openapi/v3/apis/history.rowlock.dev/v1", ""), &doc); err != nil {
		t.Fatal(err)
	}
	for kind, field := range map[string]string{"Revision": "changedFields", "ClusterRevision": "changedFields", "Difference": "changes", "Moment": "oldest"} {
		if doc.Components.Schemas["dev.rowlock.history.v1."+kind].Properties[field] == nil {
			t.Errorf("%s has no %s", kind, field)
		}
	}
	if text := string(s.Must("GET", "/openapi/v2", "")); !strings.Contains(text, "dev.rowlock.history.v1.Difference") {
		t.Error("the document of version 2 lacks the kinds")
	}
	// Before the definition, whose own APIService has the same name.
	s.Must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", `{"metadata":{"name":"v1.history.rowlock.dev"},"spec":{"group":"history.rowlock.dev","version":"v1","insecureSkipTLSVerify":true,
		"groupPriorityMinimum":100,"versionPriority":100,"service":{"namespace":"shop","name":"evil"}}}`)
	s.Do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"revisions.history.rowlock.dev"},"spec":{"group":"history.rowlock.dev","scope":"Namespaced","names":{"plural":"revisions","kind":"Revision"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	// A request is answered with all earlier writes.
	refused(t, s, root+"/namespaces/shop/revisions", http.StatusBadRequest, "object.resource")
	s.Must("GET", root+"/moments/now", "")
	without := servertest.Start(t, servertest.Complete(t))
	for _, path := range []string{root, "/apis/history.rowlock.dev", root + "/moments/now"} {
		if w := without.Do("GET", path, ""); w.Code != http.StatusNotFound {
			t.Errorf("without the group GET %s: %d", path, w.Code)
		}
	}
}

// TestUnreadable: an unreadable state is an error of a get, and a row of a list without
// objects.
func TestUnreadable(t *testing.T) {
	onStores(t, func(t *testing.T, s *servertest.Server) {
		s.Put("secrets", "shop", "key", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"key","namespace":"shop","uid":"u"}}`)
		bad := s.Put("secrets", "shop", "key", `sealed`)
		s.Put("secrets", "shop", "key", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"key","namespace":"shop","uid":"u"},"type":"Opaque"}`)
		got := read[history.RevisionList](t, s, list("shop", "secrets", "key", ""))
		if len(got.Items) != 3 || got.Items[1].Unreadable == "" || got.Items[0].Previous != "" || got.Items[2].Change != history.Created || got.Items[2].Object.UID != "u" {
			t.Errorf("%+v", got.Items)
		}
		one := fmt.Sprintf("%ssecrets:key:%d", item, bad)
		for _, path := range []string{one, one + "/diff", list("shop", "secrets", "key", "&content=true")} {
			if w := s.Do("GET", path, ""); w.Code != http.StatusInternalServerError {
				t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
			}
		}
	})
}

// TestAudited: the event names the revision, the object and the decision about it.
func TestAudited(t *testing.T) {
	policy, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: Metadata, resources: [{group: '', resources: [secrets]}]}\n- {level: RequestResponse, resources: [{group: '', resources: [configmaps]}]}\n- {level: RequestResponse, resources: [{group: history.rowlock.dev}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	log := &events{}
	s := servertest.Start(t, servertest.Complete(t), servertest.Idle, served, func(c *server.Config) {
		c.Audit = &audit.Auditor{Policy: policy, Sinks: []audit.Sink{log}, Metrics: audit.NewMetrics(), Clock: time.Now}
	})
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	s.Must("POST", "/api/v1/namespaces/shop/secrets", `{"metadata":{"name":"key"},"stringData":{"k":"hidden"}}`)
	configmap(t, s, "POST", "shown")
	grant(s, "u", "shop", rule(everyRevision))
	head := s.Store.Applied()
	log.last = ""
	s.Must("GET", fmt.Sprintf("%ssecrets:key:%d", item, head), "")
	if strings.Contains(log.last, "aGlkZGVu") || !strings.Contains(log.last, `"resource":"revisions"`) || !strings.Contains(log.last, `"history.rowlock.dev/object":"secrets shop/key"`) || !strings.Contains(log.last, `"history.rowlock.dev/decision":"allow"`) {
		t.Error(log.last)
	}
	s.Must("GET", fmt.Sprintf("%sconfigmaps:c:%d", item, head), "")
	if !strings.Contains(log.last, `"v":"shown"`) {
		t.Error(log.last)
	}
	s.Do("GET", fmt.Sprintf("%ssecrets:key:%d", item, head), "", "Impersonate-User", "u")
	if !strings.Contains(log.last, `"history.rowlock.dev/decision":"forbid"`) || !strings.Contains(log.last, `"username":"u"`) {
		t.Error(log.last)
	}
}

// events keeps the last event.
type events struct{ last string }

func (e *events) Take(line []byte) error {
	e.last = string(line)
	return nil
}

// TestUnknownPast: a moment before the oldest that is known is refused however long history is to be kept from now
// on, and the refusal names one that is answered.
func TestUnknownPast(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for seconds to pass
			d := open(t)
			s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(d, sqlstore.Config{Retention: 240 * time.Hour}))
			s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
			moment := func(at time.Time) string { return root + "/moments/" + at.UTC().Format(time.RFC3339) }
			state := func(at time.Time) string {
				return item + "configmaps:c:at-" + at.UTC().Format(time.RFC3339)
			}
			before := time.Now().Add(-time.Hour) // before there was a database
			refused(t, s, moment(before), http.StatusGone, "oldest moment that can be shown is")
			refused(t, s, state(before), http.StatusGone, "oldest moment that can be shown is")

			first := configmap(t, s, "POST", "1")
			s.Must("DELETE", configmaps+"/c", "")
			last := s.Store.Applied()
			made := written(t, s, first)
			servertest.Eventually(t, func() bool { return time.Since(made) > 2*time.Second })
			quiet := time.Now().UTC().Add(-time.Second)
			if m := read[history.Moment](t, s, moment(quiet)); m.Revision != fmt.Sprint(last) {
				t.Fatalf("before compaction %+v, want %d", m, last)
			}
			if _, err := d.Trim(t.Context(), last, 1<<20); err != nil {
				t.Fatal(err)
			}
			// The state before the last write is gone, although it is younger than the retention.
			refused(t, s, moment(made.Add(-time.Second)), http.StatusGone, "oldest moment that can be shown is")
			refused(t, s, state(made.Add(-time.Second)), http.StatusGone, "")
			// Nothing has been written since; what held then is known.
			if m := read[history.Moment](t, s, moment(quiet)); m.Revision != fmt.Sprint(last) {
				t.Errorf("after compaction %+v, want %d", m, last)
			}
			refused(t, s, state(quiet), http.StatusNotFound, "")
			// The moment that is named can be shown.
			_, named, _ := strings.Cut(s.Do("GET", moment(before), "").Body.String(), "can be shown is ")
			if len(named) < 20 {
				t.Fatalf("no moment is named in %q", named)
			}
			if m := read[history.Moment](t, s, root+"/moments/"+named[:20]); m.Revision != fmt.Sprint(last) {
				t.Errorf("at the oldest moment %s: %+v, want %d", named[:20], m, last)
			}
		})
	}
}
