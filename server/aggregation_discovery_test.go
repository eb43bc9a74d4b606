package server_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// discoveryState is the content of discovery: group versions in order as the list of groups and as the
// aggregated document have them, and the freshness and resources of each in the latter.
type discoveryState struct {
	groups, aggregated []string
	of                 map[string]string // "Current bars foos", by "group/version"
}

func readDiscovery(t *testing.T, s *servertest.Server) (d discoveryState) {
	t.Helper()
	var list struct {
		Groups []struct {
			Name     string
			Versions []struct{ GroupVersion string }
		}
	}
	var document struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version, Freshness string
				Resources          []struct{ Resource string }
			}
		}
	}
	for into, accept := range map[any]string{&list: "application/json", &document: everyGroup} {
		if err := json.Unmarshal(s.Must("GET", "/apis", "", "Accept", accept), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range list.Groups {
		for _, v := range g.Versions {
			d.groups = append(d.groups, v.GroupVersion)
		}
	}
	d.of = map[string]string{}
	for _, g := range document.Items {
		for _, v := range g.Versions {
			gv := g.Metadata.Name + "/" + v.Version
			d.aggregated = append(d.aggregated, gv)
			words := []string{v.Freshness}
			for _, r := range v.Resources {
				words = append(words, r.Resource)
			}
			d.of[gv] = strings.Join(words, " ")
		}
	}
	return d
}

const (
	services    = "/apis/apiregistration.k8s.io/v1/apiservices"
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// leave leaves a version of the group stable.example.com to a Service that there is not.
func leave(s *servertest.Server, version string, group, priority int) {
	s.Must("POST", services, fmt.Sprintf(`{"metadata":{"name":"%[1]s.stable.example.com"},"spec":{"group":"stable.example.com","version":%[1]q,"insecureSkipTLSVerify":true,
		"groupPriorityMinimum":%[2]d,"versionPriority":%[3]d,"service":{"namespace":"default","name":"unused"}}}`, version, group, priority))
}

// definition returns one of bars with versions, whose first one is stored.
func definition(group string, versions ...string) string {
	var list []string
	for i, v := range versions {
		list = append(list, fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object"}}}`, v, i == 0))
	}
	return fmt.Sprintf(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"bars.%[1]s","annotations":{"api-approved.kubernetes.io":"unapproved, a test"}},
		"spec":{"group":%[1]q,"scope":"Cluster","names":{"plural":"bars","singular":"bar","kind":"Bar"},"versions":[%[2]s]}}`, group, strings.Join(list, ","))
}

// TestDiscoveryOfOneGroup: versions of one group may be an aggregated server's, of definitions, and
// built in; each is listed as long as it is served.
func TestDiscoveryOfOneGroup(t *testing.T) {
	s := servertest.Start(t)
	before := readDiscovery(t, s)
	expect := func(what string, want map[string]string) {
		t.Helper()
		var last discoveryState
		matches := func() bool {
			last = readDiscovery(t, s)
			for gv, is := range want {
				if last.of[gv] != is || slices.Contains(last.groups, gv) != (is != "") {
					return false
				}
			}
			return true
		}
		defer func() {
			if t.Failed() {
				t.Logf("%s: %v, want %v", what, last.of, want)
			}
		}()
		servertest.Eventually(t, matches)
	}
	const v1, v2, alpha = "stable.example.com/v1", "stable.example.com/v2", "stable.example.com/v1alpha1"
	leave(s, "v1", 1000, 15)
	expect("another server's", map[string]string{v1: "Stale"})
	s.Must("POST", definitions, definition("stable.example.com", "v1", "v2"))
	expect("and a definition's", map[string]string{v1: "Stale", v2: "Current bars"})
	s.Must("DELETE", services+"/v1.stable.example.com", "")
	expect("the definition's alone", map[string]string{v1: "Current bars", v2: "Current bars"})
	s.Must("PATCH", definitions+"/bars.stable.example.com?fieldManager=x&force=true", definition("stable.example.com", "v1", "v2", "v1alpha1"), "Content-Type", "application/apply-patch+yaml")
	expect("with one more version", map[string]string{v1: "Current bars", v2: "Current bars", alpha: "Current bars"})
	s.Must("DELETE", definitions+"/bars.stable.example.com", "")
	expect("nobody's", map[string]string{v1: "", v2: "", alpha: ""})

	s.Must("POST", definitions, definition("apiextensions.k8s.io", "v1", "v2", "vfake"))
	expect("built in and a definition's", map[string]string{"apiextensions.k8s.io/v1": "Current customresourcedefinitions", "apiextensions.k8s.io/vfake": "Current bars"})
	if list := string(s.Must("GET", "/apis/apiextensions.k8s.io/v1", "")); strings.Contains(list, "bars") {
		t.Errorf("the built-in version has them: %s", list)
	}
	s.Must("POST", "/apis/apiextensions.k8s.io/vfake/bars", `{"kind":"Bar","apiVersion":"apiextensions.k8s.io/vfake","metadata":{"name":"x"}}`)
	for version, code := range map[string]int{"v1": http.StatusNotFound, "v2": http.StatusOK, "vfake": http.StatusOK} {
		if w := s.Do("GET", "/apis/apiextensions.k8s.io/"+version+"/bars/x", ""); w.Code != code {
			t.Errorf("%s: %d %s", version, w.Code, w.Body)
		}
	}
	s.Must("DELETE", definitions+"/bars.apiextensions.k8s.io", "")
	servertest.Eventually(t, func() bool { return slices.Equal(readDiscovery(t, s).aggregated, before.aggregated) })

	// The order is the same in both forms: the highest priority of a group counts, then
	// that of a version, then which one is the most mature.
	leave(s, "v1", 20000, 15)
	leave(s, "v1alpha1", 1, 15)
	leave(s, "v1alpha2", 17300, 15)
	leave(s, "v2", 1, 15)
	leave(s, "v1beta1", 1, 16)
	want := []string{"stable.example.com/v1beta1", v2, v1, "stable.example.com/v1alpha2", alpha}
	servertest.Eventually(t, func() bool {
		d := readDiscovery(t, s)
		return len(d.aggregated) == len(before.aggregated)+len(want) && slices.Equal(d.groups, d.aggregated) && slices.Equal(d.aggregated[1:1+len(want)], want)
	})
	if d := readDiscovery(t, s); d.aggregated[0] != "apiregistration.k8s.io/v1" {
		t.Errorf("%s comes first", d.aggregated[0])
	}
}

// TestPathsOfAggregatedGroup: the group of an available server is among the paths at the root until
// its APIService is gone, and its document of OpenAPI 2 counts although it has no other.
func TestPathsOfAggregatedGroup(t *testing.T) {
	b := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"swagger":"","paths":{"/apis/g.example/v1/":{},"/apis/other.example/v1/":{}}}`)
	}))
	t.Cleanup(b.Close)
	s := servertest.Start(t)
	s.Must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"behind"},"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	s.Must("POST", services, fmt.Sprintf(`{"metadata":{"name":"v1.g.example"},"spec":{"group":"g.example","version":"v1","groupPriorityMinimum":1000,
		"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"behind","port":%d}}}`, b.Listener.Addr().(*net.TCPAddr).Port))
	var root struct{ Paths []string }
	has := func() bool {
		root.Paths = nil
		if err := json.Unmarshal(s.Must("GET", "/", ""), &root); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(root.Paths, "/apis/g.example") && slices.Contains(root.Paths, "/apis/g.example/v1")
	}
	servertest.Eventually(t, has)
	var swagger struct{ Paths map[string]any }
	servertest.Eventually(t, func() bool {
		swagger.Paths = nil
		if err := json.Unmarshal(s.Must("GET", "/openapi/v2", ""), &swagger); err != nil {
			t.Fatal(err)
		}
		return swagger.Paths["/apis/g.example/v1/"] != nil
	})
	if swagger.Paths["/apis/other.example/v1/"] != nil {
		t.Error("it describes what is not left to it")
	}
	if got := readDiscovery(t, s).of["g.example/v1"]; got != "Stale" {
		t.Errorf("discovery says %q", got)
	}
	s.Must("DELETE", services+"/v1.g.example", "")
	servertest.Eventually(t, func() bool {
		has()
		return !slices.ContainsFunc(root.Paths, func(p string) bool { return strings.Contains(p, "g.example") })
	})
}
