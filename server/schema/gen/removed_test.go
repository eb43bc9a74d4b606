package main_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	upstream "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
)

const (
	claims = `"resourceClaims":[{"name":"a","resourceClaimName":"b"},{"name":"c","resourceClaimTemplateName":"d"}]`
	common = `"schedulingPolicy":{"basic":{},"gang":{"minCount":3}},"schedulingConstraints":{"topology":[{"key":"zone"}]},` + claims +
		`,"disruptionMode":"PodGroup","priorityClassName":"high","priority":7`
	workload = `{"metadata":{"name":"w","labels":{"a":"b"}},"spec":{"controllerRef":{"apiGroup":"apps","kind":"Job","name":"j"},` +
		`"podGroupTemplates":[{"name":"t",` + common + `}]}}`
	podGroup = `{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"podGroupTemplateRef":{"workload":{"workloadName":"w","podGroupTemplateName":"t"}},` + common + `},` +
		`"status":{"conditions":[{"type":"PodGroupScheduled","status":"True","observedGeneration":2,"lastTransitionTime":"2026-01-02T03:04:05Z","reason":"r","message":"m"}],` +
		`"resourceClaimStatuses":[{"name":"a","resourceClaimName":"b"}]}}`
)

// TestRemovedTypes: types that newer releases of k8s.io/api do not have are, as JSON, as Protobuf, as copies
// and in their descriptions, those of the release that has them. The test is here because no program imports
// this package: `go mod tidy` resolves the imports of the tests of imported packages, and fails if a program
// selects a newer release.
func TestRemovedTypes(t *testing.T) {
	for _, c := range []struct {
		text         string
		ours, theirs runtime.Object
	}{
		{workload, &v1alpha2.Workload{}, &upstream.Workload{}},
		{podGroup, &v1alpha2.PodGroup{}, &upstream.PodGroup{}},
		{`{"metadata":{"resourceVersion":"7"},"items":[` + workload + `]}`, &v1alpha2.WorkloadList{}, &upstream.WorkloadList{}},
		{`{"metadata":{"resourceVersion":"7"},"items":[` + podGroup + `]}`, &v1alpha2.PodGroupList{}, &upstream.PodGroupList{}},
	} {
		for _, m := range []runtime.Object{c.ours, c.theirs} {
			if err := json.Unmarshal([]byte(c.text), m); err != nil {
				t.Fatal(err)
			}
			if again, err := json.Marshal(m); err != nil || string(again) != c.text {
				t.Errorf("%T: %v, %s", m, err, cmp.Diff(c.text, string(again)))
			}
		}
		ours, err := tagged.Append(nil, c.ours)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := tagged.Append(nil, c.theirs)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%T as Protobuf: %s", c.ours, cmp.Diff(theirs, ours))
		}
		read := reflect.New(reflect.TypeOf(c.ours).Elem()).Interface().(runtime.Object)
		if err := tagged.Unmarshal(theirs, read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.ours, read); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(c.ours, c.ours.DeepCopyObject()); diff != "" {
			t.Error(diff)
		}
		same(t, reflect.TypeOf(c.ours).Elem(), reflect.TypeOf(c.theirs).Elem())
	}
}

type described interface{ SwaggerDoc() map[string]string }

// same compares the fields, their tags and the descriptions of two types, and of the types of their fields.
func same(t *testing.T, ours, theirs reflect.Type) {
	t.Helper()
	for ours.Kind() == reflect.Pointer || ours.Kind() == reflect.Slice {
		ours, theirs = ours.Elem(), theirs.Elem()
	}
	if ours == theirs || ours.Kind() != reflect.Struct {
		return
	}
	if ours.NumField() != theirs.NumField() {
		t.Fatalf("%s has %d fields, upstream %d", ours, ours.NumField(), theirs.NumField())
	}
	our, their := reflect.New(ours).Elem().Interface().(described), reflect.New(theirs).Elem().Interface().(described)
	if diff := cmp.Diff(their.SwaggerDoc(), our.SwaggerDoc()); diff != "" {
		t.Errorf("%s: %s", ours, diff)
	}
	for i := range ours.NumField() {
		f, g := ours.Field(i), theirs.Field(i)
		if f.Name != g.Name || f.Tag != g.Tag {
			t.Errorf("%s: %s `%s`, upstream %s `%s`", ours, f.Name, f.Tag, g.Name, g.Tag)
		}
		same(t, f.Type, g.Type)
	}
}
