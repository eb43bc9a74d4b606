package verbs_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestAnnotationsThatAreFields: forms with metadata alone omit annotations that a stock
// server keeps as fields, and tables without columns have no empty rows.
func TestAnnotationsThatAreFields(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil))
	const sets = "/apis/apps/v1/namespaces/default/daemonsets"
	const set = `{"metadata":{"name":"d","annotations":{"own":"1"}},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	const field = "deprecated.daemonset.template.generation"
	shows := func(method, path, body, accept string, want bool) {
		t.Helper()
		got := strings.ReplaceAll(string(s.Must(method, path, body, "Accept", accept)), "f:"+field, "")
		if strings.Contains(got, field) != want || !strings.Contains(got, "own") {
			t.Errorf("%s %s as %s: %q", method, path, accept, got)
		}
	}
	const table, partial = "application/json;as=Table;v=v1;g=meta.k8s.io", ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	shows("POST", sets+"?dryRun=All", set, table, false)
	shows("POST", sets+"?dryRun=All", set, "application/json"+partial, false)
	shows("POST", sets, set, "application/json", true)
	shows("GET", sets+"/d", "", "application/json", true)
	shows("GET", sets+"/d", "", table, false)
	shows("GET", sets+"/d?includeObject=Object", "", table, true)
	shows("GET", sets+"/d", "", "application/json"+partial, false)
	shows("GET", sets+"/d", "", "application/vnd.kubernetes.protobuf", true)
	shows("GET", sets+"/d", "", "application/vnd.kubernetes.protobuf"+partial, false)
	shows("GET", sets, "", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", false)
	for path, want := range map[string]string{
		"/apis/storage.k8s.io/v1/csistoragecapacities": `"rows":null}`, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": `"rows":null}`, "/api/v1/pods": `"rows":[]}`,
	} {
		if got := string(s.Must("GET", path, "", "Accept", table)); !strings.HasSuffix(strings.TrimSpace(got), want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestScaleAtARevision: there is no scale at a revision that is none.
func TestScaleAtARevision(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil))
	s.Must("POST", "/apis/apps/v1/namespaces/default/deployments",
		`{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	for version, want := range map[string]int{"": 200, "0": 200, "1": 200, "x": 404, "-1": 404} {
		w := s.Do("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale?resourceVersion="+version, "")
		if w.Code != want || want == 404 && !strings.Contains(w.Body.String(), `deployments/scale.apps \"d\" not found`) {
			t.Errorf("%q: %d %s", version, w.Code, w.Body)
		}
	}
}
