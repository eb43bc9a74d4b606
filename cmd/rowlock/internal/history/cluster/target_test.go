package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

// TestTargets: arguments mean what they mean to kubectl.
func TestTargets(t *testing.T) {
	t.Parallel()
	srv := rowlocktest.Start(t)
	c, err := cluster.New(srv.Config(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"deploy/web": "deployment.apps/web shop", "deploy web": "deployment.apps/web shop", "Deployment.apps/web": "deployment.apps/web shop",
		"deployments.v1.apps web other": "deployment.apps/web shop,deployment.apps/other shop", "po/a cm/b": "pod/a shop,configmap/b shop",
		"node/n1": "node/n1 ", "ns/x": "namespace/x ", "events.events.k8s.io/e": "event.events.k8s.io/e shop", "events/e": "event/e shop", "crd/a.b": "customresourcedefinition.apiextensions.k8s.io/a.b ",
	} {
		names, err := cluster.ParseNames(strings.Fields(args))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		targets, err := names.Targets(all, "shop")
		var got []string
		for _, target := range targets {
			got = append(got, target.String()+" "+target.Namespace)
		}
		if strings.Join(got, ",") != want || err != nil {
			t.Errorf("%s: %v, %v; want %s", args, got, err, want)
		}
	}
	names, err := cluster.ParseNames([]string{"deploy,cm"})
	if err != nil {
		t.Fatal(err)
	}
	if types, err := names.Types(all); err != nil || len(types) != 2 || types[0].String() != "deployments.apps" || types[1].Path("a b", "c/d", "status") != "/api/v1/namespaces/a%20b/configmaps/c%2Fd/status" {
		t.Errorf("%v, %v", types, err)
	}
	for _, word := range []string{"widget", "deployments.nowhere", "deployments.v9.apps", ""} {
		if r, err := all.Find(word); err == nil {
			t.Errorf("%q is %s", word, r.String())
		}
	}
}

func TestParseNamesRefuses(t *testing.T) {
	for _, args := range []string{"deploy/", "/web", "deploy/web cm", "deploy cm/x", "a/b/c", "deploy,cm web", "deploy,,cm", "deploy,"} {
		if _, err := cluster.ParseNames(strings.Fields(args)); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

// TestRedirects: the credentials of the user are sent to no other server, whatever a server answers.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server was sent %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	c, err := cluster.New(&rest.Config{Host: srv.URL, BearerToken: "secret"}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), cluster.Request{Path: "/api"}, nil); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("the error is %v", err)
	}
}

// TestHostileNames: a resource whose name would be another path, or steer a terminal, is none.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := func(name, kind string) string {
			return fmt.Sprintf(`{"resource":%q,"scope":"Cluster","verbs":["get"],"responseKind":{"kind":%q}}`, name, kind)
		}
		_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[%s,%s,%s,%s]}]}]}`,
			resource("../../evil", "A"), resource("..", "B"), resource("good", "C"), strings.Replace(resource("steer", "D"), "steer", `\u001b[2J`, 1))
	}))
	defer srv.Close()
	c, err := cluster.New(&rest.Config{Host: srv.URL}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Preferred() {
		if r.Name != "good" {
			t.Errorf("%q is a resource", r.Name)
		}
	}
	if len(all.Preferred()) == 0 {
		t.Error("nothing is left")
	}
}
