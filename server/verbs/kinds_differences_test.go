package verbs_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestZeroObjects: the object of a bookmark equals a stock server's empty object of the kind, for
// every kind that can be watched.
func TestZeroObjects(t *testing.T) {
	f := newFixture(t)
	bookmark := func(t *testing.T, path string) map[string]any {
		t.Helper()
		w := f.do("GET", path+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dnone", "")
		var e struct {
			Type   string
			Object map[string]any
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Type != "BOOKMARK" {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, err)
		}
		return e.Object
	}
	template := `{"metadata":{"creationTimestamp":null},"spec":{"containers":null}}`
	for path, want := range map[string]string{
		"/apis/apps/v1/deployments":                     `{"spec":{"replicas":0,"selector":null,"template":` + template + `,"strategy":{}},"status":{}}`,
		"/apis/apps/v1/replicasets":                     `{"spec":{"replicas":0,"selector":null,"template":` + template + `},"status":{"replicas":0}}`,
		"/apis/apps/v1/statefulsets":                    `{"spec":{"replicas":0,"selector":null,"serviceName":"","template":` + template + `,"updateStrategy":{}},"status":{"replicas":0,"availableReplicas":0}}`,
		"/apis/apps/v1/daemonsets":                      `{"metadata":{"deprecated.daemonset.template.generation":"0"},"spec":{"selector":null,"template":` + template + `,"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}}`,
		"/api/v1/replicationcontrollers":                `{"spec":{"replicas":0},"status":{"replicas":0}}`,
		"/api/v1/pods":                                  `{"spec":{"containers":null},"status":{}}`,
		"/apis/batch/v1/jobs":                           `{"spec":{"template":` + template + `},"status":{}}`,
		"/apis/autoscaling/v1/horizontalpodautoscalers": `{"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"status":{"currentReplicas":0,"desiredReplicas":0}}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got := bookmark(t, path)
			var expect map[string]any
			if err := json.Unmarshal([]byte(want), &expect); err != nil {
				t.Fatal(err)
			}
			notes, _ := expect["metadata"].(map[string]any)
			delete(expect, "metadata")
			for key, value := range notes {
				if a := got["metadata"].(map[string]any)["annotations"].(map[string]any); a[key] != value || a["k8s.io/initial-events-end"] != "true" {
					t.Errorf("annotations %v", a)
				}
			}
			for _, key := range []string{"kind", "apiVersion", "metadata"} {
				delete(got, key)
			}
			if d := cmp.Diff(expect, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, r := range f.h.Catalogue.All() {
		if !slices.Contains(r.Verbs, "watch") {
			continue
		}
		path := "/apis/" + r.APIVersion() + "/" + r.Plural
		if r.Group == "" {
			path = "/api/v1/" + r.Plural
		}
		wg.Go(func() { // each lasts a second
			if got := bookmark(t, path); got["kind"] != r.Kind || got["apiVersion"] != r.APIVersion() {
				t.Errorf("%s: %v", path, got)
			}
		})
	}
}

// TestLastFinalizer: an update that removes the last finalizer and makes other changes deletes the
// object as it was: watchers see that, the client sees the update.
func TestLastFinalizer(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"b"}}`)
	for _, tc := range []struct {
		path, make, drop, kind, method string
		was, sent                      map[string]string
	}{
		{
			configmaps, `{"metadata":{"name":"held","finalizers":["x.example/a"]},"data":{"v":"old"}}`,
			`{"metadata":{"finalizers":null},"data":{"v":"new"}}`, merge, "PATCH",
			map[string]string{"data.v": "old", "metadata.finalizers": "[x.example/a]"}, map[string]string{"data.v": "new", "metadata.finalizers": ""},
		},
		{
			configmaps, `{"metadata":{"name":"held","finalizers":["x.example/a"]},"data":{"v":"old"}}`,
			`{"metadata":{"name":"held"},"data":{"v":"new"}}`, "application/json", "PUT",
			map[string]string{"data.v": "old", "metadata.finalizers": "[x.example/a]"}, map[string]string{"data.v": "new", "metadata.finalizers": ""},
		},
		{
			"/api/v1/namespaces", `{"metadata":{"name":"held"}}`,
			`{"metadata":{"name":"held","labels":{"l":"new"}},"spec":{"finalizers":[]}}`, "application/json", "PUT",
			map[string]string{"spec.finalizers": "[kubernetes]", "metadata.labels.l": "", "status.phase": "Terminating"},
			map[string]string{"spec.finalizers": ""},
		},
	} {
		f.want(201, "POST", tc.path, tc.make)
		marked := f.want(200, "DELETE", tc.path+"/held", "")
		version := at(marked, "metadata.resourceVersion")
		target := tc.path + "/held"
		if strings.HasSuffix(tc.path, "/namespaces") {
			target += "/finalize"
		}
		got := f.want(200, tc.method, target, tc.drop, "Content-Type", tc.kind)
		for path, want := range tc.sent {
			if at(got, path) != want {
				t.Errorf("%s: the answer has %s %q, want %q", tc.method, path, at(got, path), want)
			}
		}
		if at(got, "metadata.resourceVersion") != version {
			t.Errorf("the answer has version %s, want %s, of which it was made", at(got, "metadata.resourceVersion"), version)
		}
		var e map[string]any
		w := f.do("GET", fmt.Sprintf("%s?watch=1&timeoutSeconds=1&resourceVersion=%s&fieldSelector=metadata.name%%3Dheld", tc.path, version), "")
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || at(e, "type") != "DELETED" {
			t.Fatalf("%v %s", err, w.Body)
		}
		for path, want := range tc.was {
			if at(e, "object."+path) != want {
				t.Errorf("%s: watchers see %s %q, want %q", tc.method, path, at(e, "object."+path), want)
			}
		}
		if at(e, "object.metadata.resourceVersion") == version {
			t.Error("the event has no version of its own")
		}
		f.want(404, "GET", tc.path+"/held", "")
	}
}

// TestNullBytes: null in a map of bytes is no bytes, in a dry run too.
func TestNullBytes(t *testing.T) {
	f := newFixture(t)
	const secrets = "/api/v1/namespaces/a/secrets"
	holds := func(answer map[string]any, path string) {
		t.Helper()
		parts := strings.Split(path, ".")
		m, _ := answer[parts[0]].(map[string]any)
		if v, ok := m[parts[1]].(string); !ok || v != "" {
			t.Errorf("%s is %#v, want an empty text", path, m[parts[1]])
		}
	}
	holds(f.want(201, "POST", secrets+"?dryRun=All", `{"metadata":{"name":"s"},"data":{"k":null}}`), "data.k")
	holds(f.want(201, "POST", secrets, `{"metadata":{"name":"s"},"data":{"k":null}}`), "data.k")
	holds(f.want(200, "GET", secrets+"/s", ""), "data.k")
	holds(f.want(200, "PUT", secrets+"/s", `{"metadata":{"name":"s"},"data":{"k":null,"l":"eA=="}}`), "data.k")
	holds(f.want(200, "PATCH", secrets+"/s", `[{"op":"add","path":"/data/m","value":null}]`, "Content-Type", "application/json-patch+json"), "data.m")
	holds(f.want(201, "POST", secrets, `{"metadata":{"name":"t"},"stringData":{"k":null}}`), "data.k")
	holds(f.want(201, "POST", configmaps, `{"metadata":{"name":"c"},"data":{"a":null},"binaryData":{"z":null}}`), "binaryData.z")
	holds(f.want(200, "GET", configmaps+"/c", ""), "data.a")
}

// TestAnnotationsOfAutoscalers: fields that v1 has in annotations are none in v2, whatever they
// contain, and have no owner.
func TestAnnotationsOfAutoscalers(t *testing.T) {
	f := newFixture(t)
	const path = "/namespaces/a/horizontalpodautoscalers"
	for _, name := range []string{"metrics", "current-metrics", "conditions", "behavior"} {
		for _, value := range []string{"{", "[]", `[{"type":"Nonsense"}]`, ""} {
			for _, version := range []string{"v1", "v2"} {
				body := fmt.Sprintf(`{"metadata":{"name":"h","annotations":{"keep":"me","autoscaling.alpha.kubernetes.io/%s":%q}},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"maxReplicas":3}}`, name, value)
				if version == "v1" && strings.Contains(value, "Nonsense") {
					continue // that is metrics indeed
				}
				f.want(201, "POST", "/apis/autoscaling/"+version+path, body)
				w := f.do("GET", "/apis/autoscaling/v2"+path+"/h", "")
				if s := w.Body.String(); strings.Contains(s, "autoscaling.alpha") || !strings.Contains(s, `"keep":"me"`) {
					t.Errorf("%s, %s of %q: %s", version, name, value, s)
				}
				f.want(200, "DELETE", "/apis/autoscaling/v2"+path+"/h", "")
			}
		}
	}
}

// TestUnparsableVersions: pages and exact reads answer 400, all others 500.
func TestUnparsableVersions(t *testing.T) {
	f := newFixture(t)
	const bad = `resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`
	for query, want := range map[string]int{
		"": 500, "&limit=0": 500, "&limit=-1": 500, "&resourceVersionMatch=NotOlderThan": 500, "&watch=1": 500,
		"&limit=2": 400, "&resourceVersionMatch=Exact": 400, "&limit=2&resourceVersionMatch=NotOlderThan": 500, "&limit=2&resourceVersionMatch=Exact": 400,
		"&limit=2&fieldSelector=metadata.name%3Dx": 400,
	} {
		got := f.want(want, "GET", configmaps+"?resourceVersion=x"+query, "")
		text := bad
		if want == 400 {
			text = "invalid resource version: " + bad
		}
		if at(got, "message") != text {
			t.Errorf("%q: %s", query, at(got, "message"))
		}
	}
	f.want(400, "DELETE", configmaps+"?resourceVersion=x", "")
	f.want(500, "GET", configmaps+"/c?resourceVersion=x", "")
}

// TestFieldLabels: each kind refuses labels in its own words.
func TestFieldLabels(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]string{
		"/apis/batch/v1/jobs":           `field label "x" not supported for Job`,
		"/api/v1/pods":                  "field label not supported: x",
		"/api/v1/events":                "field label not supported: x",
		"/api/v1/configmaps":            `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		"/apis/batch/v1/cronjobs":       `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		"/apis/apps/v1/replicasets":     `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		"/api/v1/secrets":               "field label not supported: x",
		"/api/v1/services":              "field label not supported: x",
		"/apis/events.k8s.io/v1/events": "field label not supported: x",
	} {
		if got := f.want(400, "GET", path+"?fieldSelector=x%3Dy", ""); at(got, "message") != want {
			t.Errorf("%s: %s, want %s", path, at(got, "message"), want)
		}
	}
}

// TestStorageCapacities: they have no columns of their own, are answered as a Status when
// they are deleted, and each mistake in a new one is named once.
func TestStorageCapacities(t *testing.T) {
	f := newFixture(t)
	const path = "/apis/storage.k8s.io/v1/namespaces/a/csistoragecapacities"
	bad := f.want(422, "POST", path, `{"metadata":{"name":"c","labels":{"a b":""}},"storageClassName":"","capacity":"-1"}`)
	causes := map[string]int{}
	for _, c := range bad["details"].(map[string]any)["causes"].([]any) {
		causes[at(c, "field")]++
	}
	if d := cmp.Diff(map[string]int{"metadata.labels": 1, "storageClassName": 1, "capacity": 1}, causes); d != "" {
		t.Errorf("causes (-want +got):\n%s", d)
	}
	if n := strings.Count(at(bad, "message"), "capacity: "); n != 1 {
		t.Errorf("%d mentions in %s", n, at(bad, "message"))
	}
	f.want(201, "POST", path, `{"metadata":{"name":"c"},"storageClassName":"s","capacity":"1Gi"}`)
	table := f.want(200, "GET", path, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	var names []string
	for _, c := range table["columnDefinitions"].([]any) {
		names = append(names, at(c, "name"))
	}
	if d := cmp.Diff([]string{"Name", "Created At"}, names); d != "" {
		t.Errorf("columns (-want +got):\n%s", d)
	}
	if gone := f.want(200, "DELETE", path+"/c", ""); at(gone, "kind") != "Status" {
		t.Errorf("%v", gone)
	}
}

// TestAttachmentErrors: messages may be of 1,024 bytes; the refusal names another limit.
func TestAttachmentErrors(t *testing.T) {
	f := newFixture(t)
	const path = "/apis/storage.k8s.io/v1/volumeattachments"
	f.want(201, "POST", path, `{"metadata":{"name":"v"},"spec":{"attacher":"d.example","nodeName":"n","source":{"persistentVolumeName":"p"}}}`)
	put := func(n int) *httptest.ResponseRecorder {
		return f.do("PATCH", path+"/v/status", fmt.Sprintf(`{"status":{"attached":false,"attachmentMetadata":{"":"x"},"attachError":{"message":%q}}}`, strings.Repeat("m", n)), "Content-Type", merge)
	}
	if w := put(1024); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := put(1025)
	if want := "status.attachError.message: Too long: may not be more than 262144 bytes"; w.Code != 422 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestOnPurpose holds the intended differences of docs/design/kinds.md.
func TestOnPurpose(t *testing.T) {
	f := newFixture(t)
	owners := func(answer map[string]any) int {
		list, _ := answer["metadata"].(map[string]any)["managedFields"].([]any)
		return len(list)
	}
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"},"data":{"a":"1"}}`)
	if n := owners(f.want(200, "PATCH", configmaps+"/c", `{"metadata":{"managedFields":[]}}`, "Content-Type", merge)); n != 1 {
		t.Errorf("after an empty list there are %d entries", n)
	}
	if n := owners(f.want(200, "PATCH", configmaps+"/c", `{"metadata":{"managedFields":[{}]},"data":{"b":"2"}}`, "Content-Type", merge, "If-Match", `"nothing"`)); n != 0 {
		t.Errorf("after a reset there are %d entries", n)
	}
	f.want(200, "DELETE", configmaps+"/c?dryRun=All", `{"propagationPolicy":"Background"}`)
	f.want(200, "GET", configmaps+"/c", "")
	f.want(201, "POST", configmaps, `{"metadata":{"name":"d"}}`)
	if got := f.want(200, "GET", configmaps+"?limit=1&resourceVersion=0", ""); len(got["items"].([]any)) != 2 {
		t.Errorf("%v", got["items"])
	}
	f.want(413, "POST", "/apis/coordination.k8s.io/v1/namespaces/a/leases", `{"metadata":{"name":"big"},"spec":{"holderIdentity":"`+strings.Repeat("x", 3<<19)+`"}}`)
	if w := f.do("POST", "/api/v1/namespaces//configmaps", `{"metadata":{"name":"x"}}`); w.Code != 405 {
		t.Errorf("a POST without a namespace: %d %s", w.Code, w.Body)
	}
	f.want(200, "DELETE", configmaps+"/c?dryRun", "")
	f.want(404, "GET", configmaps+"/c", "")
}
