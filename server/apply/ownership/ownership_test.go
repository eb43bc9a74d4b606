package ownership_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

type fixture struct {
	*testing.T
	*ownership.FieldManager
	catalogue *kinds.Catalogue
}

func setUp(t *testing.T) fixture {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	return fixture{t, ownership.New(ownership.Config{Schemas: schema.New(catalogue)}), catalogue}
}

func (f fixture) resource(group, plural string) *kinds.Resource {
	r := f.catalogue.Lookup(group, "v1", plural)
	if r == nil {
		f.Fatalf("no resource %s", plural)
	}
	return r
}

// owners spells the entries as "manager/Operation/subresource@second {fields}".
func owners(obj metav1.Object) string {
	var out []string
	for _, e := range obj.GetManagedFields() {
		at := "?"
		if e.Time != nil {
			at = fmt.Sprint(e.Time.Unix() - start.Unix())
		}
		var fields map[string]any
		_ = json.Unmarshal(e.FieldsV1.Raw, &fields)
		text, _ := json.Marshal(fields)
		out = append(out, fmt.Sprintf("%s/%s/%s@%s %s", e.Manager, e.Operation, e.Subresource, at, text))
	}
	return strings.Join(out, "\n")
}

func (f fixture) want(what string, obj metav1.Object, lines ...string) {
	f.Helper()
	if got, want := owners(obj), strings.Join(lines, "\n"); got != want {
		f.Errorf("%s: owners\n%s\nwant\n%s", what, got, want)
	}
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}, Data: data}
}

func TestOwnersOfUpdates(t *testing.T) {
	f := setUp(t)
	r := f.resource("", "configmaps")
	obj := configMap(map[string]string{"a": "1", "b": "2"})
	must(t, f.AfterCreate(r, "", obj, "first", start))
	f.want("create", obj, `first/Update/@0 {"f:data":{".":{},"f:a":{},"f:b":{}}}`)
	obj.UID = "u"

	next := obj.DeepCopy()
	next.Data["a"] = "7"
	next.ManagedFields = nil
	must(t, f.AfterUpdate(r, "", obj, next, "second", start.Add(time.Second)))
	f.want("a field changes hands", next,
		`first/Update/@0 {"f:data":{".":{},"f:b":{}}}`, `second/Update/@1 {"f:data":{"f:a":{}}}`)

	same := next.DeepCopy()
	must(t, f.AfterUpdate(r, "", next, same, "second", start.Add(2*time.Second)))
	f.want("nothing changes", same,
		`first/Update/@0 {"f:data":{".":{},"f:b":{}}}`, `second/Update/@1 {"f:data":{"f:a":{}}}`)

	kept := next.DeepCopy()
	kept.ManagedFields = []metav1.ManagedFieldsEntry{}
	must(t, f.AfterUpdate(r, "", next, kept, "third", start.Add(2*time.Second)))
	f.want("an empty list changes nothing", kept,
		`first/Update/@0 {"f:data":{".":{},"f:b":{}}}`, `second/Update/@1 {"f:data":{"f:a":{}}}`)

	gone := next.DeepCopy()
	delete(gone.Data, "a")
	must(t, f.AfterUpdate(r, "", next, gone, "third", start.Add(2*time.Second)))
	f.want("a removed field has no owner", gone, `first/Update/@0 {"f:data":{".":{},"f:b":{}}}`)

	cleared := next.DeepCopy()
	cleared.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	cleared.Data["b"] = "9"
	must(t, f.AfterUpdate(r, "", next, cleared, "third", start.Add(2*time.Second)))
	f.want("cleared", cleared)

	after := cleared.DeepCopy()
	after.Data["z"] = "1"
	must(t, f.AfterUpdate(r, "", cleared, after, "third", start.Add(3*time.Second)))
	f.want("untracked after clearing", after)
}

func TestOldUpdatersAreJoined(t *testing.T) {
	f := setUp(t)
	r := f.resource("", "configmaps")
	var live kinds.Object = configMap(map[string]string{"k": "v"})
	must(t, f.AfterCreate(r, "", live, "creator", start))
	live.SetUID("u")
	for i := range 11 {
		next := live.DeepCopyObject().(*corev1.ConfigMap)
		next.Data[fmt.Sprint("k", i)] = "v"
		next.ManagedFields = nil
		must(t, f.AfterUpdate(r, "", live, next, fmt.Sprintf("m%02d", i), start.Add(time.Duration(i+1)*time.Second)))
		live = next
	}
	entries := live.GetManagedFields()
	if len(entries) != 10 || entries[0].Manager != "ancient-changes" {
		t.Errorf("%d entries:\n%s", len(entries), owners(live))
	}
	if !strings.Contains(string(entries[0].FieldsV1.Raw), `"f:k0"`) {
		t.Errorf("the oldest entry lost its fields: %s", entries[0].FieldsV1.Raw)
	}
}

func TestClientEntriesAreHeard(t *testing.T) {
	f := setUp(t)
	r := f.resource("", "configmaps")
	obj := configMap(map[string]string{"a": "1"})
	obj.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "other", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{ "f:data": {"f:a": {}}}`)},
	}}
	must(t, f.AfterCreate(r, "", obj, "creator", start))
	f.want("create", obj, `creator/Update/@0 {"f:data":{".":{},"f:a":{}}}`)
	obj.UID = "u"

	next := obj.DeepCopy()
	next.ManagedFields[0].FieldsV1 = &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:a":{}}}`)}
	must(t, f.AfterUpdate(r, "", obj, next, "editor", start))
	f.want("an edited record", next, `creator/Update/@0 {"f:data":{"f:a":{}}}`)

	broken := obj.DeepCopy()
	broken.ManagedFields[0].Operation = "Guess"
	must(t, f.AfterUpdate(r, "", obj, broken, "editor", start))
	f.want("a broken record is ignored", broken, `creator/Update/@0 {"f:data":{".":{},"f:a":{}}}`)
}

const deploymentPatch = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: web, image: "i:1"}]}
`

func TestApply(t *testing.T) {
	f := setUp(t)
	r := f.resource("apps", "deployments")
	live, _, err := f.Apply(r, "", nil, []byte(deploymentPatch), "one", false, start)
	must(t, err)
	f.want("create", live, `one/Apply/@0 {"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`)
	live.SetUID("u")

	other := strings.ReplaceAll(deploymentPatch, "replicas: 2", "replicas: 5")
	_, _, err = f.Apply(r, "", live, []byte(other), "two", false, start)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one": .spec.replicas`) {
		t.Errorf("conflict: %v", err)
	}
	forced, _, err := f.Apply(r, "", live, []byte(other), "two", true, start.Add(time.Second))
	must(t, err)
	if *forced.(*appsv1.Deployment).Spec.Replicas != 5 || strings.Contains(string(forced.GetManagedFields()[0].FieldsV1.Raw), "f:replicas") {
		t.Errorf("forced:\n%s", owners(forced))
	}

	less := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"
	dropped, _, err := f.Apply(r, "", live, []byte(less), "one", false, start.Add(time.Second))
	must(t, err)
	if dropped.(*appsv1.Deployment).Spec.Replicas != nil {
		t.Error("a field that its only owner dropped is still there")
	}

	for patch, want := range map[string]string{
		"a: [":                      "error decoding YAML",
		"apiVersion: v1\nkind: Pod": "invalid object type: /v1, Kind=Pod",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {colour: red}":                           ".spec.colour: field not declared in schema",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {managedFields: [{manager: x}]}":     "metadata.managedFields must be nil",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: text}}}}": "error decoding YAML",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: text}}}":  "expected list, got",
	} {
		if _, _, err := f.Apply(r, "", live, []byte(patch), "x", false, start); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", patch, err, want)
		}
	}
}

// TestEmptied: an object that an apply names without any field is absent in release 1.32, and empty in later ones.
func TestEmptied(t *testing.T) {
	for _, v := range []release.Version{release.V132, release.V136} {
		f := setUp(t)
		r := *f.resource("apps", "deployments")
		r.Release = v
		spec := func(text string) []byte {
			return []byte(strings.Replace(deploymentPatch, "{containers: [{name: web, image: \"i:1\"}]}", text, 1))
		}
		live, _, err := f.Apply(&r, "", nil, spec(`{securityContext: {runAsUser: 1}, volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {medium: Memory}}],
      containers: [{name: web, image: "i:1", securityContext: {runAsUser: 1, capabilities: {add: [X]}}, livenessProbe: {periodSeconds: 3, exec: {command: [x]}}}]}`), "one", false, start)
		must(t, err)
		live.SetUID("u")
		before := live.DeepCopyObject()
		got, _, err := f.Apply(&r, "", live, spec(`{securityContext: {}, volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {}}],
      containers: [{name: web, image: "i:1", securityContext: {runAsUser: 1, capabilities: {}}, livenessProbe: {periodSeconds: 3, exec: {}}}]}`), "one", false, start)
		must(t, err)
		pod := got.(*appsv1.Deployment).Spec.Template.Spec
		c := pod.Containers[0]
		for name, there := range map[string]bool{
			"the securityContext": pod.SecurityContext != nil, "an emptyDir": pod.Volumes[1].EmptyDir != nil,
			"the capabilities": c.SecurityContext.Capabilities != nil, "the command": c.LivenessProbe.Exec != nil,
		} {
			if there != (v == release.V136) {
				t.Errorf("%v: %s is there: %v", v, name, there)
			}
		}
		if c.SecurityContext.RunAsUser == nil || c.LivenessProbe.PeriodSeconds != 3 || pod.Volumes[0].EmptyDir == nil {
			t.Errorf("%v: gone too: %+v", v, pod)
		}
		if diff := cmp.Diff(before, live); diff != "" {
			t.Errorf("the live object is changed:\n%s", diff)
		}
	}
}

// A change to an object of two versions is seen by managers of both.
func TestManagersOfAnotherVersion(t *testing.T) {
	f := setUp(t)
	v1, v2 := f.catalogue.Lookup("autoscaling", "v1", "horizontalpodautoscalers"), f.catalogue.Lookup("autoscaling", "v2", "horizontalpodautoscalers")
	patch := `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"}}}`
	obj, _, err := f.Apply(v2, "", nil, []byte(patch), "two", false, start)
	must(t, err)
	obj.SetUID("u")
	old, err := v1.FromStorage(obj.DeepCopyObject().(kinds.Object))
	must(t, err)
	next := old.DeepCopyObject().(kinds.Object)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	must(t, err)
	content["spec"].(map[string]any)["maxReplicas"] = int64(9)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, next))
	next.SetManagedFields(nil)
	must(t, f.AfterUpdate(v1, "", old, next, "one", start))
	f.want("update in v1", next,
		`two/Apply/@0 {"f:spec":{"f:scaleTargetRef":{"f:kind":{},"f:name":{}}}}`, `one/Update/@0 {"f:spec":{"f:maxReplicas":{}}}`)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
