package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/harness"
)

// keptObject is an object that servers of several releases read from one database.
type keptObject struct {
	path, name, body string // path: of its collection, in the version of 1.36
	since            string // the oldest of the releases 1.32, 1.33 and 1.36 that serves the path
	newer            string // what 1.36 shows of it and older releases do not
}

const keptPod = `{"containers":[{"name":"c","image":"i","restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}],"restartPolicy":"Never","env":[{"name":"e","valueFrom":{"fileKeyRef":{"path":"p","volumeName":"v","key":"k"}}}]}],"volumes":[{"name":"v","emptyDir":{}}],"hostnameOverride":"kept","restartPolicy":"Never"}`

var keptObjects = []keptObject{
	{"/api/v1/namespaces/kept/serviceaccounts", "default", `{}`, "1.32", ""},
	{"/api/v1/namespaces/kept/configmaps", "kept", `{"data":{"a":"b"}}`, "1.32", ""},
	{"/api/v1/namespaces/kept/pods", "kept", `{"spec":` + keptPod + `}`, "1.32", "hostnameOverride restartPolicyRules fileKeyRef"},
	{"/api/v1/namespaces/kept/podtemplates", "kept", `{"template":{"metadata":{"labels":{"a":"b"}},"spec":` + keptPod + `}}`, "1.32", "hostnameOverride restartPolicyRules fileKeyRef"},
	{"/apis/apps/v1/namespaces/kept/deployments", "kept", `{"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}],"hostnameOverride":"kept"}}}}`, "1.32", "hostnameOverride"},
	{"/apis/autoscaling/v2/namespaces/kept/horizontalpodautoscalers", "kept", `{"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"kept","apiVersion":"apps/v1"},"behavior":{"scaleUp":{"tolerance":"50m"}}}}`, "1.32", ""},
	{"/apis/storage.k8s.io/v1/csidrivers", "kept", `{"spec":{"serviceAccountTokenInSecrets":true,"nodeAllocatableUpdatePeriodSeconds":60,"tokenRequests":[{"audience":"a"}]}}`, "1.32", "serviceAccountTokenInSecrets"},
	{"/apis/networking.k8s.io/v1/servicecidrs", "kept", `{"spec":{"cidrs":["10.100.0.0/16"]}}`, "1.33", ""},
	{"/apis/storage.k8s.io/v1/volumeattributesclasses", "kept", `{"driverName":"d","parameters":{"a":"b"}}`, "1.36", ""},
	{"/apis/coordination.k8s.io/v1beta1/namespaces/kept/leasecandidates", "kept", `{"spec":{"leaseName":"l","binaryVersion":"1.36.0","emulationVersion":"1.36.0","strategy":"OldestEmulationVersion"}}`, "1.33", ""},
	{"/apis/resource.k8s.io/v1/deviceclasses", "kept", `{"spec":{"selectors":[{"cel":{"expression":"true"}}],"extendedResourceName":"example.com/kept"}}`, "1.36", "extendedResourceName"},
	{"/apis/resource.k8s.io/v1/namespaces/kept/resourceclaims", "kept", `{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"kept","capacity":{"requests":{"m":"1Gi"}}}}]}}}`, "1.36", "capacity"},
	{"/apis/resource.k8s.io/v1/resourceslices", "kept", `{"spec":{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"allNodes":true,"devices":[{"name":"gpu","allowMultipleAllocations":true,"capacity":{"m":{"value":"1Gi"}}}]}}`, "1.36", "allowMultipleAllocations"},
	{"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies", "kept", `{"spec":{"failurePolicy":"Ignore","reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["events"]}]},"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: \"remove\", path: \"/note\"}]"}}]}}`, "1.36", ""},
}

// releasedServer runs a server of a release on a store, and ends it before it returns.
func releasedServer(t *testing.T, store, dir, name string, use func(a *api), flags ...string) {
	t.Helper()
	s, err := harness.Start(t.Context(), harness.Options{Store: store, DataDir: dir, Args: append(flags, "--emulated-version="+name, "--runtime-config=api/all=true")})
	if err != nil {
		t.Fatalf("as %s: %v", name, err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Errorf("as %s: %v\n%s", name, err, s.Log())
		}
	}()
	use(newAPI(t, s))
}

// get returns an answer whose status must be 200.
func (a *api) get(t *testing.T, path string) string {
	t.Helper()
	code, body, err := a.do(t.Context(), http.MethodGet, path, "", "")
	if err != nil || code != http.StatusOK {
		t.Errorf("GET %s: %d %s, %v", path, code, body, err)
	}
	return string(body)
}

// TestReleasesOfADatabase: servers of all releases can open a database in any order. None loses by reading what another
// stored, though it shows only the kinds and fields that it has; neither does store rewrite.
func TestReleasesOfADatabase(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	for name, store := range map[string]string{"sqlite": "", "postgres": createDB(t, pg, "releases")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := map[string]string{} // the text of each release
			releasedServer(t, store, dir, "1.32", func(a *api) {
				createKept(t, a, `/api/v1/namespaces`, "kept", `{}`)
				createKept(t, a, `/apis/apps/v1/namespaces/kept/daemonsets`, "old", `{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
				if first["old"] = a.get(t, "/apis/apps/v1/namespaces/kept/daemonsets/old"); !strings.Contains(first["old"], `"creationTimestamp":null`) {
					t.Errorf("as 1.32: %s", first["old"])
				}
			})
			releasedServer(t, store, dir, "1.36", func(a *api) {
				for _, o := range keptObjects {
					createKept(t, a, o.path, o.name, o.body)
					first[o.path] = a.get(t, o.path+"/"+o.name)
					for _, field := range strings.Fields(o.newer) {
						if !strings.Contains(first[o.path], `"`+field+`"`) {
							t.Errorf("as 1.36: %s is not in %s", field, first[o.path])
						}
					}
				}
				if got := a.get(t, "/apis/apps/v1/namespaces/kept/daemonsets/old"); strings.Contains(got, `"creationTimestamp":null`) || !strings.Contains(got, `"template":{"metadata":{"labels":{"a":"b"}}`) {
					t.Errorf("as 1.36: %s", got)
				}
			}, "--min-compatibility-version=1.33")
			releasedServer(t, store, dir, "1.33", func(a *api) { readKept(t, a, "1.33", first) })
			rewriteKept(t, store, dir)
			releasedServer(t, store, dir, "1.36", func(a *api) { readKept(t, a, "1.36", first) })
			releasedServer(t, store, dir, "1.32", func(a *api) {
				readKept(t, a, "1.32", first)
				if diff := cmp.Diff(first["old"], a.get(t, "/apis/apps/v1/namespaces/kept/daemonsets/old")); diff != "" {
					t.Errorf("as 1.32 again: %s", diff)
				}
				if got := a.get(t, "/apis/apps/v1/namespaces/kept/deployments/kept"); !strings.Contains(got, `"template":{"metadata":{"creationTimestamp":null,"labels":{"a":"b"}}`) {
					t.Errorf("as 1.32: %s", got)
				}
			})
			releasedServer(t, store, dir, "1.36", func(a *api) { readKept(t, a, "1.36", first) })
		})
	}
}

func createKept(t *testing.T, a *api, path, name, body string) {
	t.Helper()
	body = strings.Replace(fmt.Sprintf(`{"metadata":{"name":%q},`, name)+body[1:], ",}", "}", 1)
	code, answer, err := a.do(t.Context(), http.MethodPost, path, "application/json", body)
	if err != nil || code != http.StatusCreated && !(code == http.StatusConflict && name == "default") {
		t.Errorf("POST %s: %d %s, %v", path, code, answer, err)
	}
}

// readKept reads and lists all objects as a release, which is the newest or shows nothing that is newer.
func readKept(t *testing.T, a *api, release string, first map[string]string) {
	t.Helper()
	for _, o := range keptObjects {
		if o.since > release {
			if code, body, err := a.do(t.Context(), http.MethodGet, o.path+"/"+o.name, "", ""); err != nil || code != http.StatusNotFound {
				t.Errorf("as %s: GET %s: %d %s, %v", release, o.path, code, body, err)
			}
			continue
		}
		got, list := a.get(t, o.path+"/"+o.name), a.get(t, o.path)
		if !strings.Contains(list, `"name":"`+o.name+`"`) {
			t.Errorf("as %s: %s is not in %s", release, o.name, list)
		}
		if release == "1.36" {
			if diff := cmp.Diff(first[o.path], got); diff != "" {
				t.Errorf("as 1.36 again, %s: %s", o.path, diff)
			}
			continue
		}
		for _, field := range strings.Fields(o.newer) {
			if strings.Contains(withoutManagers(t, got), `"`+field+`"`) {
				t.Errorf("as %s: %s is in %s", release, field, got)
			}
		}
	}
	if release == "1.33" { // resource claims are there in a version of their own
		if got := a.get(t, "/apis/resource.k8s.io/v1beta2/namespaces/kept/resourceclaims/kept"); strings.Contains(withoutManagers(t, got), `"capacity"`) || !strings.Contains(got, `"exactly":{"deviceClassName":"kept"`) {
			t.Errorf("as 1.33: %s", got)
		}
	}
}

// withoutManagers returns an object without its managed fields, which name all fields that were ever written.
func withoutManagers(t *testing.T, text string) string {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	delete(obj["metadata"].(map[string]any), "managedFields")
	out, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// rewriteKept has store rewrite look at everything, which has its form already, and store verify find no fault.
func rewriteKept(t *testing.T, store, dir string) {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	at := "--store=" + store
	if store == "" {
		at = "--data-dir=" + dir
	}
	for want, args := range map[string][]string{"wrote 0 and 0": {"store", "rewrite", "--all", at}, "": {"store", "verify", at}} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if out, err := exec.CommandContext(ctx, bin, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
