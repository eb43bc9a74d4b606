package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patched sends a patch, which must be answered with a code, and reads the answer.
func (p *protocol) patched(t *testing.T, path, contentType, body string, code int, into any) {
	t.Helper()
	got, answer, err := p.raw.do(t.Context(), "PATCH", path, contentType, body)
	if err != nil {
		t.Fatal(err)
	}
	if got != code {
		t.Fatalf("%s %.200s: %d, want %d: %.500s", path, body, got, code, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatal(err)
	}
}

// applies: an apply creates, shares, gives up and takes over fields, through the object
// and its status.
func applies(t *testing.T, p *protocol, ns string) {
	deployments := "/apis/apps/v1/namespaces/" + ns + "/deployments/"
	apply := func(manager, query, name, rest string, code int) *appsv1.Deployment {
		t.Helper()
		d := &appsv1.Deployment{}
		p.patched(t, deployments+name+"?fieldManager="+manager+query, applyType,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},`+rest+`}`, code, d)
		return d
	}
	spec := func(replicas, labels string) string {
		return `"spec":{` + replicas + `"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"` + labels +
			`}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}`
	}
	made := apply("one", "", "d", spec(`"replicas":3,`, `,"x":"y"`), 201)
	if again := apply("one", "", "d", spec(`"replicas":3,`, `,"x":"y"`), 200); again.ResourceVersion != made.ResourceVersion {
		t.Errorf("an apply of the same: %s, was %s", again.ResourceVersion, made.ResourceVersion)
	}
	apply("two", "", "d", spec(`"replicas":3,`, ""), 200)
	if d := apply("one", "", "d", spec("", ""), 200); *d.Spec.Replicas != 3 || d.Spec.Template.Labels["x"] != "" {
		t.Errorf("given up: %d replicas, labels %v", *d.Spec.Replicas, d.Spec.Template.Labels)
	}
	no := &metav1.Status{}
	five := `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5}}`
	p.patched(t, deployments+"d?fieldManager=one", applyType, five, 409, no)
	if len(no.Details.Causes) != 1 || no.Details.Causes[0].Field != ".spec.replicas" || !strings.Contains(no.Message, `conflict with "two"`) {
		t.Errorf("a conflict: %+v", no)
	}
	if d := apply("one", "&force=true", "d", spec(`"replicas":5,`, ""), 200); *d.Spec.Replicas != 5 {
		t.Errorf("by force: %d replicas", *d.Spec.Replicas)
	}
	// Defaulted again, once no manager owns it.
	apply("two", "", "d", spec("", ""), 200)
	if d := apply("one", "", "d", spec("", ""), 200); *d.Spec.Replicas != 1 {
		t.Errorf("given up by all: %d replicas", *d.Spec.Replicas)
	}
	status := `"status":{"conditions":[{"type":"MyStatus","status":"True"}]}`
	if d := apply("three", "", "d/status", status, 200); len(d.Status.Conditions) != 1 || d.Status.Conditions[0].Type != "MyStatus" {
		t.Errorf("through the status: %+v", d.Status)
	}
	p.patched(t, deployments+"none/status?fieldManager=two", applyType, `{"apiVersion":"apps/v1","kind":"Deployment",`+status+`}`, 404, no)
	p.patched(t, deployments+"d", applyType, five, 422, no)
}

// largeObjects: what only the record of its owners makes too large is stored without it.
func largeObjects(t *testing.T, p *protocol, ns string) {
	var keys []string
	for i := range 9999 {
		keys = append(keys, fmt.Sprintf(`"this-key-is-so-long-that-the-set-of-fields-is-larger-than-the-object-%d":"A"`, i))
	}
	data := `"data":{` + strings.Join(keys, ",") + `}}`
	path := "/api/v1/namespaces/" + ns + "/configmaps"
	p.configMap(t, ns, "updated", nil)
	p.configMap(t, ns, "patched", nil)
	for _, tc := range []struct{ method, path, contentType, name string }{
		{"POST", path, jsonType, "new"},
		{"PUT", path + "/updated", jsonType, "updated"},
		{"PATCH", path + "/patched", mergeType, "patched"},
	} {
		code, answer, err := p.raw.do(t.Context(), tc.method, tc.path, tc.contentType, `{"metadata":{"name":"`+tc.name+`"},`+data)
		if err != nil || code >= 300 {
			t.Fatalf("%s: %d %v %.300s", tc.method, code, err, answer)
		}
		cm := &corev1.ConfigMap{}
		if err := json.Unmarshal(answer, cm); err != nil || len(cm.Data) != 9999 || len(cm.ManagedFields) != 0 {
			t.Errorf("%s: %d keys, %d owners: %v", tc.method, len(cm.Data), len(cm.ManagedFields), err)
		}
	}
	code, answer, err := p.raw.do(t.Context(), "PATCH", path+"/applied?fieldManager=m", applyType, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},`+data)
	if err != nil || code != 413 {
		t.Errorf("an apply: %d %v %.300s", code, err, answer)
	}
}
