package verbs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestAbsentObjects: a PUT makes an object of the kinds that allow it and finds none of the others,
// and no subresource makes one, for every kind that is served.
func TestAbsentObjects(t *testing.T) {
	f := newFixture(t)
	made := 0
	for _, r := range builtin.Resources() {
		if served := f.h.Catalogue.Lookup(r.Group, r.Version, r.Plural); r.Storage == nil || served == nil || served.Off {
			continue
		}
		path, metadata := "/api/"+r.Version, `"metadata":{"name":"absent"}`
		if r.Group != "" {
			path = "/apis/" + r.APIVersion()
		}
		if r.Namespaced {
			path += "/namespaces/a"
		}
		path += "/" + r.Plural + "/absent"
		body := `{"kind":"` + r.Kind + `","apiVersion":"` + r.APIVersion() + `",` + metadata + `}`
		for i := range r.Subresources {
			sub := &r.Subresources[i]
			if sub.Update == nil {
				continue
			}
			if w := f.do("PUT", path+"/"+sub.Name, body); w.Code != http.StatusNotFound {
				t.Errorf("PUT %s/%s: %d %s", path, sub.Name, w.Code, w.Body)
			}
			if w := f.do("PATCH", path+"/"+sub.Name+"?fieldManager=m", body, "Content-Type", "application/apply-patch+yaml"); w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
				t.Errorf("apply %s/%s: %d %s", path, sub.Name, w.Code, w.Body)
			}
		}
		w := f.do("PUT", path, body)
		if !r.Storage.CreateOnUpdate {
			if w.Code != http.StatusNotFound {
				t.Errorf("PUT %s: %d %s", path, w.Code, w.Body)
			}
			continue
		}
		made++
		if w.Code != http.StatusCreated && w.Code != http.StatusUnprocessableEntity { // rules come after that
			t.Errorf("PUT %s: %d %s", path, w.Code, w.Body)
		}
	}
	if made == 0 {
		t.Error("no kind allows it")
	}
}

// TestMalformedVersions: a request to storage for an exact version, or for a page of one, is a client's
// error; one that a newer version satisfies reaches the cache, whose errors are the server's.
func TestMalformedVersions(t *testing.T) {
	f := newFixture(t)
	const reason = `resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`
	for query, code := range map[string]int{
		"": 500, "&resourceVersionMatch=NotOlderThan": 500, "&resourceVersionMatch=NotOlderThan&limit=1": 500,
		"&limit=1": 400, "&resourceVersionMatch=Exact": 400, "&resourceVersionMatch=Exact&limit=1": 400,
	} {
		want := reason
		if code == 400 {
			want = "invalid resource version: " + reason
		}
		if got := f.want(code, "GET", "/api/v1/namespaces/a/configmaps?resourceVersion=abc"+query, ""); at(got, "message") != want {
			t.Errorf("%s: %v", query, got)
		}
		for _, group := range []string{"/api/v1", "/apis/events.k8s.io/v1"} { // which a stock server does not cache
			if got := f.want(400, "GET", group+"/namespaces/a/events?resourceVersion=abc"+query, ""); at(got, "message") != "invalid resource version: "+reason {
				t.Errorf("events%s: %v", query, got)
			}
		}
	}
	if got := f.want(400, "GET", "/api/v1/namespaces/a/events/x?resourceVersion=abc", ""); at(got, "message") != "invalid resource version: "+reason {
		t.Errorf("an event: %v", got)
	}
	if got := f.want(500, "GET", "/api/v1/namespaces/a/configmaps/x?resourceVersion=abc", ""); at(got, "message") != reason {
		t.Errorf("a config map: %v", got)
	}
}

// TestAbsentScales: the scale of an absent object is not found under its own name where the kind is built
// in, and as the object itself where it is custom.
func TestAbsentScales(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil), func(c *server.Config) {
		c.Controllers.Runs = func(name string) bool { return name == "customresourcedefinitions" }
	})
	s.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"lamps","kind":"Lamp"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
		"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}}]}}`)
	const lamps = "/apis/example.com/v1/namespaces/default/lamps"
	servertest.Eventually(t, func() bool { return s.Do("GET", lamps, "").Code == http.StatusOK })
	for path, want := range map[string]string{
		lamps + "/none/scale": `"message":"lamps.example.com \"none\" not found","reason":"NotFound","details":{"name":"none","group":"example.com","kind":"lamps"}`,
		"/apis/apps/v1/namespaces/default/deployments/none/scale":      `"message":"deployments/scale.apps \"none\" not found"`,
		"/api/v1/namespaces/default/replicationcontrollers/none/scale": `"message":"replicationcontrollers/scale.autoscaling \"none\" not found"`,
	} {
		if w := s.Do("GET", path, ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
