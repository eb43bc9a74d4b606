package verbs_test

import (
	"encoding/json"
	"net/http"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestScaleWithoutReplicas: a patch of the scale of a custom object without replicas must set them; it does not set them to
// zero by the way.
func TestScaleWithoutReplicas(t *testing.T) {
	s := servertest.Start(t)
	s.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"boats.scale.example.com"},"spec":{"group":"scale.example.com","scope":"Namespaced",
		"names":{"plural":"boats","kind":"Boat"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.oars","statusReplicasPath":".status.oars"}},
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"oars":{"type":"integer"},"sail":{"type":"string"}}},"status":{"type":"object","properties":{"oars":{"type":"integer"}}}}}}}]}}`)
	const boats = "/apis/scale.example.com/v1/namespaces/default/boats"
	servertest.Eventually(t, func() bool { return s.Do("GET", boats, "").Code == http.StatusOK })
	s.Must("POST", boats, `{"apiVersion":"scale.example.com/v1","kind":"Boat","metadata":{"name":"b"},"spec":{"sail":"red"}}`)
	const scale, merge, apply = boats + "/b/scale", "application/merge-patch+json", "application/apply-patch+yaml"
	for _, c := range []struct {
		query, body, contentType string
	}{
		{"", `{"metadata":{"labels":{"a":"b"}}}`, merge},
		{"", `{"spec":{"replicas":-2147483648}}`, merge},
		{"", `[{"op":"test","path":"/metadata/name","value":"b"}]`, "application/json-patch+json"},
		{"?fieldManager=m", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"b"}}`, apply},
	} {
		w := s.Do("PATCH", scale+c.query, c.body, "Content-Type", c.contentType)
		var st metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil {
			t.Fatal(err)
		}
		if w.Code != http.StatusBadRequest || st.Reason != metav1.StatusReasonBadRequest || st.Message != `the spec replicas field ".spec.oars" cannot be empty` {
			t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
		}
	}
	if w := s.Do("GET", scale, ""); w.Code != http.StatusInternalServerError {
		t.Errorf("there are replicas: %d %s", w.Code, w.Body)
	}
	var got autoscalingv1.Scale
	if err := json.Unmarshal(s.Must("PATCH", scale, `{"spec":{"replicas":3}}`, "Content-Type", merge), &got); err != nil || got.Spec.Replicas != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := json.Unmarshal(s.Must("PATCH", scale, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge), &got); err != nil || got.Spec.Replicas != 3 {
		t.Errorf("a patch without replicas left %+v, %v", got, err)
	}
	var updated autoscalingv1.Scale
	if err := json.Unmarshal(s.Must("PUT", scale, `{"metadata":{"name":"b"}}`), &updated); err != nil || updated.Spec.Replicas != 0 {
		t.Errorf("an update without replicas left %+v, %v", updated, err)
	}
}
