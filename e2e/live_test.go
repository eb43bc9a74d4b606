package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/e2e/harness"
)

const liveDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[
{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"subresources":{"status":{}}},
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},"subresources":{"status":{}}}]}}`

// liveObjects are of a dozen kinds: with addresses and ports, with secrets, with an owner
// (whose UID is put in), custom, and more configmaps than a page.
func liveObjects(owner string) string {
	list := []string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"shop"},"data":{"a":"AAEC"},"immutable":true}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{"type":"NodePort","clusterIP":"10.96.7.7","selector":{"a":"b"},"ports":[{"port":80,"nodePort":30123}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"100m"}}}]}}`,
		`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"disk"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}}`,
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"` + owner + `"}]},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
		`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"tick","namespace":"shop"},"spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"shop"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"none","namespace":"shop"},"spec":{"podSelector":{}}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop","finalizers":["example.com/f"]},"spec":{"big":9007199254740993,"half":0.5,"deep":{"a":[1,"2",{"b":false}]}}}`,
	}
	for i := range 40 {
		list = append(list, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d","namespace":"shop"},"data":{"n":"%d"}}`, i, i))
	}
	return `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(list, ",") + `]}`
}

const liveDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// liveCluster starts a server, and fills it.
func liveCluster(t *testing.T, store string) *harness.Server {
	t.Helper()
	s := harness.StartT(t, harness.Options{Store: store})
	kubectl := s.Kubectl(t)
	apply := func(text string) {
		if _, err := kubectl.Try(text, "apply", "--server-side", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	kubectl.Run("create", "namespace", "shop")
	apply(liveDefinition)
	kubectl.Run("wait", "--for=condition=Established", "crd/widgets.example.com")
	apply(liveDeployment)
	apply(liveObjects(strings.TrimSpace(kubectl.Run("get", "deployment", "web", "-n", "shop", "-o", "jsonpath={.metadata.uid}"))))
	return s
}

// everything reads all objects of all resources in all versions that a server shows.
func everything(t *testing.T, s *harness.Server) map[string]any {
	t.Helper()
	get := asAdministrator(t, s)
	all := map[string]any{}
	var groups metav1.APIGroupList
	decodeRaw(t, get, "/apis", &groups)
	versions := []string{"/api/v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			versions = append(versions, "/apis/"+v.GroupVersion)
		}
	}
	for _, root := range versions {
		if strings.HasPrefix(root, "/apis/history.rowlock.dev/") {
			continue // asks for one object at a time
		}
		var resources metav1.APIResourceList
		decodeRaw(t, get, root, &resources)
		for _, r := range resources.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "componentstatuses" {
				continue
			}
			var list struct{ Items []map[string]any }
			decodeRaw(t, get, root+"/"+r.Name, &list)
			for _, item := range list.Items {
				meta := item["metadata"].(map[string]any)
				all[fmt.Sprintf("%s/%s %v/%v", root, r.Name, meta["namespace"], meta["name"])] = item
			}
		}
	}
	return all
}

func decodeRaw(t *testing.T, get func(path string) (int, []byte), path string, into any) {
	t.Helper()
	code, body := get(path)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, body)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// serversOwn are objects that a server recreates for itself, whatever was imported.
func serversOwn(name string) bool {
	return strings.HasSuffix(name, " default/kubernetes") && strings.Contains(name, "/endpoint") || strings.Contains(name, "/leases kube-system/") || strings.Contains(name, "/events ")
}

// limitedTo returns a kubeconfig of a service account that has one ClusterRole.
func limitedTo(t *testing.T, s *harness.Server, name string, rights ...string) string {
	t.Helper()
	kubectl := s.Kubectl(t)
	kubectl.Run("create", "serviceaccount", name, "-n", "default")
	kubectl.Run(append([]string{"create", "clusterrole", name}, rights...)...)
	kubectl.Run("create", "clusterrolebinding", name, "--clusterrole="+name, "--serviceaccount=default:"+name)
	text, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl.Run("config", "--kubeconfig="+path, "set-credentials", name, "--token="+strings.TrimSpace(kubectl.Run("create", "token", name, "-n", "default")))
	kubectl.Run("config", "--kubeconfig="+path, "set-context", "--current", "--user="+name)
	return path
}

// TestImportLiveCluster: everything that a second rowlock shows is the same, object by
// object and in every version, in a database of the other kind that was filled from it.
func TestImportLiveCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	postgres := sharedPostgres(t)
	file := func(name string) string { return "sqlite:" + filepath.Join(dir, name) }
	for name, stores := range map[string][2]string{
		"sqlite to postgres": {file("from.db"), createDB(t, postgres, "to")},
		"postgres to sqlite": {createDB(t, postgres, "from"), file("to.db")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := liveCluster(t, stores[0])
			data := t.TempDir()
			args := []string{"--from-cluster", source.Kubeconfig, "--store", stores[1], "--data-dir", data, "--page-size", "7", "--qps", "1000", "--take-along", source.DataDir}
			limited := limitedTo(t, source, "limited", "--verb=list", "--resource=configmaps,namespaces")
			if _, errOut, err := importInto(t, append(args, "--from-cluster", limited)...); err == nil || !strings.Contains(errOut, "may not list") {
				t.Fatalf("a user who may not: %v, %s", err, errOut)
			}
			a, errOut, err := importInto(t, append(args, "--from-cluster", limited, "--skip-forbidden", "--dry-run")...)
			if err != nil || len(a.Resources) != 2 || a.Resources[0].Name != "configmaps" || a.Resources[1].Name != "namespaces" || !a.leftResource("secrets", "forbidden") {
				t.Fatalf("a user who may some: %v, %+v, %s", err, a, errOut)
			}
			want := everything(t, source)
			if a, errOut, err = importInto(t, args...); err != nil || a.Revision <= a.SourceRevision || a.Undecodable > 0 || !a.leftResource("componentstatuses", "made up") {
				t.Fatalf("%v, %+v, %s", err, a, errOut)
			}
			wantClean(t, stores[1])
			target := harness.StartT(t, harness.Options{DataDir: data, Store: stores[1]})
			compared := 0
			got := everything(t, target)
			for name, object := range want {
				if serversOwn(name) {
					continue
				}
				compared++
				if diff := cmp.Diff(object, got[name]); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
			if compared < 200 {
				t.Errorf("only %d objects were compared", compared)
			}
			if out, err := target.Kubectl(t).Try("", "create", "service", "clusterip", "other", "--tcp=80", "--clusterip=10.96.7.7"); err == nil || !strings.Contains(out+err.Error(), "already allocated") {
				t.Errorf("an address that came along was given away: %v %s", err, out)
			}
			if code, body := asAdministrator(t, target)(fmt.Sprintf("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion=%d", a.SourceRevision)); code != http.StatusGone && !strings.Contains(string(body), `"code":410`) {
				t.Errorf("a watch from the old cluster: %d %s", code, body)
			}
		})
	}
}

// leftResource reports whether a resource was left out, for a reason.
func (a importAnswer) leftResource(name, reason string) bool {
	for _, l := range a.ResourcesLeft {
		if l.Resource == name && strings.Contains(l.Reason, reason) {
			return true
		}
	}
	return false
}

// TestImportLiveClusterRefusals: contradictory flags are refused by name.
func TestImportLiveClusterRefusals(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"want one source":          {},
		"--from-cluster":           {"--from-cluster", filepath.Join(t.TempDir(), "none")},
		"--prefix":                 {"--from-cluster", "x", "--prefix", "/other"},
		"--skip-forbidden":         {"state.db", "--skip-forbidden"},
		"want one source: SOURCE,": {"state.db", "--from-cluster", "x"},
	} {
		if _, errOut, err := importInto(t, args...); err == nil || !strings.Contains(errOut, want) {
			t.Errorf("%q: %v, %s, want %q", args, err, errOut, want)
		}
	}
}

// copyAnswer holds the fields of `copy --output json` that tests check.
type copyAnswer struct {
	Total   struct{ Created, Changed, Unchanged, Skipped, Conflicts, Failed int64 }
	Details []struct{ Resource, Namespace, Name, Outcome, Reason string }
}

// copyInto runs the command.
func copyInto(t *testing.T, args ...string) (a copyAnswer, errOut string, err error) {
	t.Helper()
	errOut, err = answered(t, &a, append([]string{"copy", "--output", "json", "--qps", "1000"}, args...)...)
	return a, errOut, err
}

// hasDetail reports whether the details list an object with this outcome.
func (a copyAnswer) hasDetail(resource, name, outcome string) bool {
	for _, d := range a.Details {
		if d.Resource == resource && d.Name == name && d.Outcome == outcome {
			return true
		}
	}
	return false
}
