package ownership_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/schema"
)

// TestCrowded: the merge library is not asked for what it would take minutes for.
func TestCrowded(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	owner := ownership.New(ownership.Config{Schemas: schema.New(catalogue)})
	r := catalogue.Lookup("", "v1", "configmaps")
	for n, refused := range map[int]bool{5000: false, 100000: true} {
		var data strings.Builder
		for i := range n {
			fmt.Fprintf(&data, `,"k%d":"v"`, i)
		}
		body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{` + data.String()[1:] + `}}`
		_, _, err := owner.Apply(r, "", nil, []byte(body), "m", false, time.Now())
		if apierrors.IsRequestEntityTooLargeError(err) != refused || !refused && err != nil {
			t.Errorf("%d fields side by side: %v", n, err)
		}
	}
}

// TestCrowdedScale: nor is it for a Scale, whose metadata may hold as much.
func TestCrowdedScale(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	owner := ownership.New(ownership.Config{Schemas: schema.New(catalogue)})
	r := catalogue.Lookup("apps", "v1", "deployments")
	for n, refused := range map[int]bool{1000: false, 30000: true} {
		var labels strings.Builder
		for i := range n {
			fmt.Fprintf(&labels, `,"k%d":"v"`, i)
		}
		body := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","labels":{` + labels.String()[1:] + `}},"spec":{"replicas":3}}`
		scale, _, err := owner.ApplyScale(r, "scale", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}, []byte(body), "m", false)
		if apierrors.IsRequestEntityTooLargeError(err) != refused || !refused && (err != nil || scale.Spec.Replicas != 3) {
			t.Errorf("%d labels of a Scale: %v", n, err)
		}
	}
}

// TestOverowned: the cost stays bounded for fields with thousands of managers, and for entries in the worst
// order for the library.
func TestOverowned(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	owner := ownership.New(ownership.Config{Schemas: schema.New(catalogue)})
	r := catalogue.Lookup("", "v1", "configmaps")
	entries := func(managers, each int) []metav1.ManagedFieldsEntry {
		out := make([]metav1.ManagedFieldsEntry, managers)
		for i := range out {
			var set strings.Builder
			for k := each; k > 0; k-- {
				fmt.Fprintf(&set, `,"f:k%06d":{}`, i*each+k)
			}
			out[i] = metav1.ManagedFieldsEntry{
				Manager: fmt.Sprint("m", i), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{` + set.String()[1:] + `}}`)},
			}
		}
		return out
	}
	for _, tc := range []struct {
		name           string
		managers, each int
		refused        bool
	}{
		{"few managers", 10, 500, false},
		{"some managers", 200, 2, false},
		{"many managers", 8000, 1, true},
		{"large sets", 60, 1000, true},
		{"one with fields from last to first", 1, 60000, true},
	} {
		object := func() *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ManagedFields: entries(tc.managers, tc.each)}}
		}
		patch := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"y"}}`
		_, _, err := owner.Apply(r, "", object(), []byte(patch), "m", false, time.Now())
		if apierrors.IsRequestEntityTooLargeError(err) != tc.refused || !tc.refused && err != nil {
			t.Errorf("%s: apply: %v", tc.name, err)
		}
		obj := object()
		if err := owner.AfterCreate(r, "", obj, "m", time.Now()); apierrors.IsRequestEntityTooLargeError(err) != tc.refused || !tc.refused && err != nil {
			t.Errorf("%s: create: %v", tc.name, err)
		}
	}
}

// TestBrokenSets: a set that is no JSON, as protobuf lets clients send one, is not read by the
// library either where that would take long.
func TestBrokenSets(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	owner := ownership.New(ownership.Config{Schemas: schema.New(catalogue)})
	r := catalogue.Lookup("", "v1", "configmaps")
	for _, begin := range []string{`{"f:data":{"f:x":{}`, "{\"f:data\":{\"f:\x01\":{}", `{"f:data":{"f:\q":{}`} {
		var set strings.Builder
		for k := 60000; k > 0; k-- {
			fmt.Fprintf(&set, `,"f:k%06d":{}`, k)
		}
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(begin + set.String())},
		}}}}
		if err := owner.AfterCreate(r, "", obj, "m", time.Now()); !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("%s...: %v", begin, err)
		}
	}
}
