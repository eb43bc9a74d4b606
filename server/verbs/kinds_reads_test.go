package verbs_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// TestFieldSelectorsOfKinds: each kind has its own error for an unknown field selector.
func TestFieldSelectorsOfKinds(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct{ path, selector, message string }{
		{"/apis/batch/v1/jobs", "status.successful=0", ""},
		{"/apis/batch/v1/jobs", "status.failed=0", `field label "status.failed" not supported for Job`},
		{"/apis/batch/v1/cronjobs", "status.successful=0", `"status.successful" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"/api/v1/pods", "spec.host=x,status.podIPs=y", ""},
		{"/api/v1/pods", "spec.hostname=x", "field label not supported: spec.hostname"},
		{"/api/v1/nodes", "metadata.namespace=x", "field label not supported: metadata.namespace"},
		{"/api/v1/persistentvolumes", "metadata.namespace=x", ""},
		{"/api/v1/events", "source=kubelet", ""},
		{"/apis/events.k8s.io/v1/events", "reason=x,reportingController=x", ""},
		{"/apis/events.k8s.io/v1/events", "source=kubelet", "field label not supported: source"},
		{"/apis/events.k8s.io/v1/events", "reportingComponent=x", "field label not supported: reportingComponent"},
	} {
		w := f.do("GET", c.path+"?fieldSelector="+url.QueryEscape(c.selector), "")
		var st map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &st)
		if got := at(st, "message"); got != c.message || (w.Code == 200) != (c.message == "") {
			t.Errorf("%s by %s: %d %s", c.path, c.selector, w.Code, got)
		}
	}
}

// Schemas of flows are shown in the order in which they are tried; the list itself
// keeps the order of names. Those that every cluster has are left out.
func TestRowsInOrder(t *testing.T) {
	f := newFixture(t)
	const path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
	for name, precedence := range map[string]string{"a": "300", "b": "20", "c": "300", "d": "100"} {
		f.want(201, "POST", path, `{"metadata":{"name":"`+name+`"},"spec":{"matchingPrecedence":`+precedence+`,"priorityLevelConfiguration":{"name":"x"}}}`)
	}
	table := f.want(200, "GET", path, "", "Accept", asTable)
	var shown []string
	for _, row := range table["rows"].([]any) {
		if name := row.(map[string]any)["cells"].([]any)[0].(string); len(name) == 1 {
			shown = append(shown, name)
		}
	}
	if want := []string{"b", "d", "a", "c"}; !slices.Equal(shown, want) {
		t.Errorf("rows: %q", shown)
	}
	var listed []string
	for _, item := range f.want(200, "GET", path, "")["items"].([]any) {
		if name := at(item, "metadata.name"); len(name) == 1 {
			listed = append(listed, name)
		}
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(listed, want) {
		t.Errorf("items: %q", listed)
	}
}

// Some subresources answer with their parent, but not as a Table.
func TestSubresourcesWithoutTable(t *testing.T) {
	f := newFixture(t)
	pod := "/api/v1/namespaces/a/pods"
	f.want(201, "POST", pod, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	f.want(200, "GET", pod+"/p/status", "", "Accept", asTable)
	f.want(406, "GET", pod+"/p/ephemeralcontainers", "", "Accept", asTable)
	if got := f.want(200, "GET", pod+"/p/ephemeralcontainers", "", "Accept", asTable+",application/json"); got["kind"] != "Pod" {
		t.Errorf("without a Table there is a fallback: %v", got["kind"])
	}
}

// Names that cannot be part of a path are refused where they would be looked up, after errors of the body.
func TestNamesOfNothing(t *testing.T) {
	f := newFixture(t)
	const message = `Name parameter invalid: "a%b": may not contain '%'`
	for _, c := range []struct{ method, body, contentType, want string }{
		{"PUT", `{"metadata":{"name":"a%b"}}`, "", message},
		{"PUT", `{"metadata":{"name":"other"}}`, "", "the name of the object (other) does not match the name on the URL (a%b)"},
		{"PATCH", `{"data":{"k":"v"}}`, merge, message},
		{"PATCH", `apiVersion: v1
kind: ConfigMap
metadata: {name: "a%b"}`, "application/apply-patch+yaml", message},
		{"DELETE", "", "", message},
	} {
		got := f.want(400, c.method, configmaps+"/a%25b?fieldManager=m", c.body, "Content-Type", c.contentType)
		if at(got, "message") != c.want {
			t.Errorf("%s %s: %s", c.method, c.body, at(got, "message"))
		}
	}
}
