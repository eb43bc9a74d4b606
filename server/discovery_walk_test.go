package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	kindshistory "github.com/rowlock/rowlock/server/kinds/history"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs/components"
)

// TestPlainClients: the verbs in discovery work without parameters, with every group and every gate on,
// as backup tools and the namespace controller use them.
func TestPlainClients(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t, "--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true"), func(c *server.Config) {
		c.Catalogue.Set(append(c.Catalogue.Known(), kindshistory.Resources()...))
		c.Components = []components.Component{{Name: "scheduler", Probe: func(context.Context) (string, error) { return "ok", nil }}}
	})
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	s.Must("POST", "/api/v1/namespaces/shop/configmaps", `{"metadata":{"name":"held","finalizers":["x.example.com/held"]}}`)
	s.Must("DELETE", "/api/v1/namespaces/shop", "")

	read := func(path string, into any, header ...string) {
		t.Helper()
		w := s.Do("GET", path, "", header...)
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil || w.Code != http.StatusOK {
			t.Fatalf("GET %s: %d %s %v", path, w.Code, w.Body, err)
		}
	}
	roots := []string{"/api/v1"}
	var groups metav1.APIGroupList
	read("/apis", &groups)
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			roots = append(roots, "/apis/"+v.GroupVersion)
		}
	}
	seen := map[string]int{}
	for _, root := range roots {
		var list metav1.APIResourceList
		read(root, &list)
		for _, r := range list.APIResources {
			seen[list.GroupVersion+" "+r.Name]++
			if !strings.Contains(r.Name, "/") {
				plainly(t, s, root, r)
			}
		}
	}
	for _, name := range []string{"v1 componentstatuses", "history.rowlock.dev/v1 revisions", "history.rowlock.dev/v1 moments", "storagemigration.k8s.io/v1alpha1 storageversionmigrations", "resource.k8s.io/v1beta1 resourceclaims", "authorization.k8s.io/v1 selfsubjectrulesreviews"} {
		if seen[name] != 1 {
			t.Errorf("%s is named %d times", name, seen[name])
		}
	}

	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"empty"}}`)
	s.Must("DELETE", "/api/v1/namespaces/empty", "")
	servertest.Eventually(t, func() bool { return s.Do("GET", "/api/v1/namespaces/empty", "").Code == http.StatusNotFound })
}

// plainly uses a resource with the verbs in discovery.
func plainly(t *testing.T, s *servertest.Server, root string, r metav1.APIResource) {
	t.Helper()
	all, some := root+"/"+r.Name, root+"/"+r.Name
	if r.Namespaced {
		some = root + "/namespaces/shop/" + r.Name
	}
	can := func(verb string) bool { return slices.Contains(r.Verbs, verb) }
	if can("list") {
		for _, path := range []string{all, some, all + "?limit=500", all + "?resourceVersion=0"} {
			for _, accept := range []string{"application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"} {
				var got struct {
					Kind     string
					Metadata metav1.ListMeta
				}
				w := s.Do("GET", path, "", "Accept", accept)
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || !strings.HasSuffix(got.Kind, "List") && got.Kind != "Table" {
					t.Errorf("GET %s as %s: %d %.200s %v", path, accept, w.Code, w.Body, err)
				}
			}
		}
	}
	if can("watch") {
		for _, path := range []string{all, some} {
			canWatch(t, s, path+"?watch=true")
			canWatch(t, s, path+"?watch=true&resourceVersion=0&allowWatchBookmarks=true")
		}
	}
	if can("deletecollection") {
		path := some
		if !r.Namespaced {
			path += "?dryRun=All"
		}
		if w := s.Do("DELETE", path, ""); w.Code != http.StatusOK {
			t.Errorf("DELETE %s: %d %s", path, w.Code, w.Body)
		}
	}
	if can("create") && !can("list") { // a review, a binding: a missing field is a fault of the client
		if w := s.Do("POST", some, `{}`); w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed || w.Code == http.StatusInternalServerError {
			t.Errorf("POST %s: %d %s", some, w.Code, w.Body)
		}
	}
}

// canWatch opens a watch, and reads nothing of it.
func canWatch(t *testing.T, s *servertest.Server, path string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+servertest.Token)
	answer, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Errorf("GET %s: %s", path, answer.Status)
	}
	_ = answer.Body.Close()
}
