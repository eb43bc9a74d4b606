package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/servertest/stock"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

const flowSchemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"

// namesOf returns the names of listed objects, sorted.
func namesOf(t *testing.T, s *servertest.Server, path string) []string {
	t.Helper()
	var names []string
	for _, item := range listed(t, s, path) {
		_, name, _ := strings.Cut(stock.Name(item), "/")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func listed(t *testing.T, s *servertest.Server, path string) []map[string]any {
	t.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(s.Must("GET", path, ""), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// A new server of a release holds the objects that a stock server of it holds.
func TestDefaultObjectsOfReleases(t *testing.T) {
	for _, theirs := range stock.Servers(t) {
		if theirs.Gates != nil {
			continue
		}
		t.Run(theirs.Name(), func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+theirs.Release.String()), servertest.Idle)
			for resource, want := range theirs.Objects {
				if strings.HasPrefix(resource, "apiregistration.k8s.io/") {
					continue // they follow from the versions that are served
				}
				got := map[string]any{}
				for _, item := range listed(t, s, "/apis/"+resource) {
					kept := stock.Kept(t, item)
					got[stock.Name(kept)] = kept
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -stock +ours\n%s", resource, diff)
				}
			}
		})
	}
}

// A server of another release, newer or older, on the objects of a server before it: it brings back what its
// release has, and removes the flow schemas that it does not have, unless people keep them for themselves.
func TestDefaultObjectsOfAnotherRelease(t *testing.T) {
	store := storetest.NewShared()
	// Each server is a subtest, whose end ends it.
	as := func(v release.Version, then func(t *testing.T, s *servertest.Server)) {
		t.Helper()
		t.Run("as "+v.String(), func(t *testing.T) {
			s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+v.String()), servertest.On(store.Open(), sqlstore.Config{}), func(c *server.Config) {
				c.Controllers.Runs = func(name string) bool { return name == "flowschemas" }
			})
			then(t, s)
		})
	}
	const ours, kept = "endpoint-controller", "workload-leader-election"
	role := "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregate-to-edit"
	as(release.V132, func(t *testing.T, s *servertest.Server) {
		if names := namesOf(t, s, flowSchemas); !slices.Contains(names, ours) || !slices.Contains(names, kept) {
			t.Errorf("the first server has %q", names)
		}
		s.Must("PATCH", flowSchemas+"/"+kept, `{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}}}`, "Content-Type", "application/merge-patch+json")
	})
	as(release.V136, func(t *testing.T, s *servertest.Server) {
		servertest.Eventually(t, func() bool { return !slices.Contains(namesOf(t, s, flowSchemas), ours) })
		if names := namesOf(t, s, flowSchemas); !slices.Contains(names, kept) {
			t.Errorf("a schema that people keep is gone: %q", names)
		}
		if got := string(s.Must("GET", role, "")); !strings.Contains(got, "resourceclaimtemplates") {
			t.Errorf("the newer server has not added its rules: %s", got)
		}
	})
	as(release.V132, func(t *testing.T, s *servertest.Server) {
		if names := namesOf(t, s, flowSchemas); !slices.Contains(names, ours) {
			t.Errorf("the older server has not brought back its schema: %q", names)
		}
	})
}
