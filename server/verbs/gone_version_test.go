package verbs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestOwnersOfAGoneVersion: where managed fields have entries of a version that a definition
// no longer has, an apply is refused, as by a stock server, and any other write stores the
// object without them.
func TestOwnersOfAGoneVersion(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil), func(c *server.Config) {
		c.Controllers.Runs = func(name string) bool { return name == "customresourcedefinitions" }
	})
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	version := func(name, storage string) string {
		return `{"name":"` + name + `","served":true,"storage":` + storage + `,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}`
	}
	s.Must("POST", definitions, `{"metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"lamps","kind":"Lamp"},"versions":[`+
		version("v1", "false")+","+version("v2", "true")+"]}}")
	const lamps = "/apis/example.com/v2/namespaces/default/lamps"
	servertest.Eventually(t, func() bool { return s.Do("GET", lamps, "").Code == http.StatusOK })
	apply := func(version, name, body string) (int, string) {
		w := s.Do("PATCH", strings.Replace(lamps, "v2", version, 1)+"/"+name+"?force=true&fieldManager="+version, `{"apiVersion":"example.com/`+version+`","kind":"Lamp","metadata":{"name":"`+name+`"},`+body+"}",
			"Content-Type", "application/apply-patch+yaml")
		return w.Code, w.Body.String()
	}
	for _, name := range []string{"one", "two"} {
		if code, body := apply("v1", name, `"a":"1"`); code != http.StatusCreated {
			t.Fatal(code, body)
		}
	}
	s.Must("PATCH", definitions+"/lamps.example.com", `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`, "Content-Type", "application/json-patch+json")
	servertest.Eventually(t, func() bool {
		return s.Do("GET", strings.Replace(lamps, "v2", "v1", 1), "").Code == http.StatusNotFound
	})
	if code, body := apply("v2", "two", `"b":"1"`); code != http.StatusOK || !strings.Contains(body, `"example.com/v1"`) {
		t.Error("with a version that is there and not served:", code, body)
	}
	s.Must("PATCH", definitions+"/lamps.example.com", `[{"op":"remove","path":"/spec/versions/0"}]`, "Content-Type", "application/json-patch+json")
	const want = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"request to convert CR to an invalid group/version: example.com/v1","code":500}`
	servertest.Eventually(t, func() bool {
		code, body := apply("v2", "one", `"a":"2"`)
		return code == http.StatusInternalServerError && strings.TrimSpace(body) == want
	})
	got := string(s.Must("PATCH", lamps+"/two", `{"a":"3"}`, "Content-Type", "application/merge-patch+json"))
	if strings.Contains(got, "managedFields") || !strings.Contains(got, `"a":"3"`) {
		t.Error(got)
	}
	if code, body := apply("v2", "two", `"a":"4"`); code != http.StatusOK || !strings.Contains(body, "before-first-apply") {
		t.Error(code, body)
	}
}
