package server_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// shop is an aggregated server that keeps widgets of namespaces, and describes them.
type shop struct {
	*httptest.Server
	mu      sync.Mutex
	widgets map[string][]string // names by namespace
	held    bool                // widgets stay, as finalizers hold them
	stalls  bool                // it does not answer
	types   []string            // that creates were sent in
}

func startShop(t *testing.T) *shop {
	b := &shop{widgets: map[string][]string{}}
	b.Server = httptest.NewTLSServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	stalls := b.stalls
	b.mu.Unlock()
	if stalls {
		<-r.Context().Done()
		return
	}
	switch r.URL.Path {
	case "/apis":
		http.Error(w, "lists alone", http.StatusNotAcceptable)
		return
	case "/apis/g.example/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"g.example/v1","resources":[
			{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["create","delete","deletecollection","get","list","watch"]}]}`)
		return
	case "/openapi/v2":
		fmt.Fprint(w, `{"paths":{"/apis/g.example/v1/widgets":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/g.Widget"}}}}}},"definitions":{"g.Widget":{"type":"object"}}}`)
		return
	case "/openapi/v3":
		fmt.Fprint(w, `{"paths":{"apis/g.example/v1":{"serverRelativeURL":"/openapi/v3/apis/g.example/v1?hash=H1"}}}`)
		return
	case "/openapi/v3/apis/g.example/v1":
		fmt.Fprintf(w, `{"openapi":"3.0.0","for":%q,"hash":%q}`, r.Header.Get("X-Remote-User"), r.URL.Query().Get("hash"))
		return
	}
	b.serveWidgets(w, r)
}

// serveWidgets answers below a namespace.
func (b *shop) serveWidgets(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/apis/g.example/v1/namespaces/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	namespace, _, _ := strings.Cut(rest, "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.Method {
	case http.MethodPost:
		b.types = append(b.types, r.Header.Get("Content-Type"))
		b.widgets[namespace] = append(b.widgets[namespace], fmt.Sprint("w", len(b.widgets[namespace])))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"Widget","apiVersion":"g.example/v1"}`)
	case http.MethodDelete:
		if !b.held {
			delete(b.widgets, namespace)
		}
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	default:
		var items []string
		for _, name := range b.widgets[namespace] {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"finalizers":["example/kept"]}}`, name))
		}
		fmt.Fprintf(w, `{"kind":"WidgetList","apiVersion":"g.example/v1","metadata":{},"items":[%s]}`, strings.Join(items, ","))
	}
}

func (b *shop) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *shop) register(t *testing.T, s *servertest.Server) {
	t.Helper()
	s.Must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"shop"},"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	s.Must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(`{"metadata":{"name":"v1.g.example","labels":{"of":"shop"}},"spec":{"group":"g.example","version":"v1","groupPriorityMinimum":19999,
		"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"shop","port":%d}}}`, b.Listener.Addr().(*net.TCPAddr).Port))
	servertest.Eventually(t, func() bool { return condition(s) == "True Passed: all checks passed" })
}

const everyGroup = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// group returns the first version of the second group of the aggregated document, which is that
// of the shop, as "name freshness resource...".
func group(s *servertest.Server) string {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Freshness string
				Resources []struct{ Resource string }
			}
		}
	}
	if json.Unmarshal(s.Do("GET", "/apis", "", "Accept", everyGroup).Body.Bytes(), &list) != nil || len(list.Items) < 2 {
		return "no document"
	}
	out := list.Items[1].Metadata.Name + " " + list.Items[1].Versions[0].Freshness
	for _, r := range list.Items[1].Versions[0].Resources {
		out += " " + r.Resource
	}
	return out
}

// namespaceConditions returns the conditions of a namespace that report a fault.
func namespaceConditions(s *servertest.Server, name string) string {
	var ns struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	w := s.Do("GET", "/api/v1/namespaces/"+name, "")
	if w.Code == http.StatusNotFound {
		return "gone"
	}
	if err := json.Unmarshal(w.Body.Bytes(), &ns); err != nil {
		return err.Error()
	}
	var out []string
	for _, c := range ns.Status.Conditions {
		if c.Status == "True" {
			out = append(out, c.Type+" "+c.Reason+": "+c.Message)
		}
	}
	return strings.Join(out, "\n")
}

func quickNamespaces(c *server.Config) {
	c.Controllers.Named, c.Controllers.NamespaceInterval = func(name string) bool { return name == "namespace" }, 10*time.Millisecond
}

// TestAggregatedDocuments goes the way of a group that another server serves: it is in
// discovery and OpenAPI, its objects are made and listed through this server, APIServices
// are patched and deleted as a collection, and nothing of the group is left.
func TestAggregatedDocuments(t *testing.T) {
	b, s := startShop(t), servertest.Start(t, withPeople)
	b.register(t, s)
	servertest.Eventually(t, func() bool { return group(s) == "g.example Current widgets" })
	if body := s.Do("GET", "/apis/g.example", "").Body.String(); !strings.Contains(body, `"preferredVersion":{"groupVersion":"g.example/v1","version":"v1"}`) {
		t.Errorf("the group: %s", body)
	}
	if body := s.Do("GET", "/apis", "").Body.String(); !strings.Contains(body, `"name":"g.example"`) {
		t.Error("the group is not listed")
	}
	for range 2 {
		s.Must("POST", "/apis/g.example/v1/namespaces/default/widgets", `{"kind":"Widget"}`)
	}
	// The encoding of a body is passed through unchanged.
	if w := s.Do("POST", "/apis/g.example/v1/namespaces/default/widgets", "\xd9\xd9\xf7\xa0", "Content-Type", "application/cbor"); w.Code != http.StatusCreated {
		t.Errorf("cbor: %d %s", w.Code, w.Body)
	}
	b.set(func() {
		if b.types[2] != "application/cbor" {
			t.Errorf("types of bodies: %v", b.types)
		}
	})
	if body := s.Do("GET", "/apis/g.example/v1/namespaces/default/widgets", "").Body.String(); !strings.Contains(body, `"w2"`) {
		t.Errorf("list: %s", body)
	}
	s.Must("DELETE", "/apis/g.example/v1/namespaces/default/widgets", "")

	index := func() string { return s.Do("GET", "/openapi/v3", "").Body.String() }
	servertest.Eventually(t, func() bool {
		return strings.Contains(index(), `"apis/g.example/v1":{"serverRelativeURL":"/openapi/v3/apis/g.example/v1?hash=H1"}`)
	})
	r := s.Do("GET", "/openapi/v3/apis/g.example/v1?hash=H1", "", "Authorization", "Bearer ann")
	if r.Code != http.StatusOK || !strings.Contains(r.Body.String(), `"for":"ann","hash":"H1"`) {
		t.Errorf("the document: %d %s", r.Code, r.Body)
	}
	if r := s.Do("GET", "/openapi/v3/apis/g.example/v1?hash=H1", "", "Authorization", "Bearer nobody"); r.Code != http.StatusForbidden {
		t.Errorf("the document for who may not have it: %d", r.Code)
	}
	servertest.Eventually(t, func() bool {
		return strings.Contains(s.Do("GET", "/openapi/v2", "").Body.String(), `"/apis/g.example/v1/widgets":`)
	})

	const one = "/apis/apiregistration.k8s.io/v1/apiservices/v1.g.example"
	w := s.Do("PATCH", one+"/status", `{"status":{"conditions":[{"type":"Extra","status":"True","reason":"Patched","message":"by a test","lastTransitionTime":"2024-01-01T00:00:00Z"}]}}`, "Content-Type", "application/strategic-merge-patch+json")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"Patched"`) {
		t.Errorf("status: %d %s", w.Code, w.Body)
	}
	s.Must("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector=of%3Dshop", "")
	servertest.Eventually(t, func() bool {
		return s.Do("GET", "/apis/g.example", "").Code == http.StatusNotFound && !strings.HasPrefix(group(s), "g.example ")
	})
	servertest.Eventually(t, func() bool { return !strings.Contains(index(), "g.example") })
	if s.Do("GET", "/apis/g.example/v1", "").Code != http.StatusNotFound {
		t.Error("the version is served still")
	}
}

// TestAggregatedNamespaces: objects at other servers are deleted with their namespace; while they
// cannot be, or are unknown, conditions report it, local objects are deleted all the same, and
// other requests do not wait.
func TestAggregatedNamespaces(t *testing.T) {
	b, s := startShop(t), servertest.Start(t, quickNamespaces)
	b.register(t, s)
	servertest.Eventually(t, func() bool { return group(s) == "g.example Current widgets" })
	fill := func(name string) {
		s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
		s.Must("POST", "/api/v1/namespaces/"+name+"/configmaps", `{"metadata":{"name":"here"}}`)
		s.Must("POST", "/apis/g.example/v1/namespaces/"+name+"/widgets", `{"kind":"Widget"}`)
	}
	fill("held")
	b.set(func() { b.held = true })
	s.Must("DELETE", "/api/v1/namespaces/held", "")
	servertest.Eventually(t, func() bool {
		text := namespaceConditions(s, "held")
		return strings.Contains(text, "NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: widgets.g.example has 1 resource instances") &&
			strings.Contains(text, "example/kept in 1 resource instances")
	})
	b.set(func() { b.held = false })
	servertest.Eventually(t, func() bool { return namespaceConditions(s, "held") == "gone" })

	fill("unknown")
	b.set(func() { b.stalls = true })
	b.CloseClientConnections()
	// An APIService that has changed has its server asked anew.
	s.Do("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.g.example", `{"metadata":{"labels":{"asked":"again"}}}`, "Content-Type", "application/merge-patch+json")
	servertest.Eventually(t, func() bool { return group(s) == "g.example Stale" })
	s.Must("DELETE", "/api/v1/namespaces/unknown", "")
	servertest.Eventually(t, func() bool {
		return strings.Contains(namespaceConditions(s, "unknown"), "NamespaceDeletionDiscoveryFailure DiscoveryFailed: Discovery failed for some groups, 1 failing: "+
			"unable to retrieve the complete list of server APIs: g.example/v1: stale GroupVersion discovery: g.example/v1")
	})
	if w := s.Do("GET", "/api/v1/namespaces/unknown/configmaps/here", ""); w.Code != http.StatusNotFound {
		t.Errorf("what is here: %d", w.Code)
	}
	if group(s) != "g.example Stale" || s.Do("GET", "/openapi/v3", "").Code != http.StatusOK {
		t.Error("documents wait for a server that stalls")
	}
	b.set(func() { b.stalls = false })
	s.Do("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.g.example", `{"metadata":{"labels":{"asked":"once more"}}}`, "Content-Type", "application/merge-patch+json")
	servertest.Eventually(t, func() bool { return namespaceConditions(s, "unknown") == "gone" })
	b.set(func() {
		if len(b.widgets) > 0 {
			t.Errorf("left at the other server: %v", b.widgets)
		}
	})
}
