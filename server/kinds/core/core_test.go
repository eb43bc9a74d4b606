package core_test

import (
	"context"
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/core"
)

// Whatever a client sends, nothing panics, and defaults that are there already
// stay as they are.
func TestAnyObject(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	ctx := context.Background()
	for _, resource := range builtin.Resources() {
		if resource.Group != "" || resource.Storage == nil || resource.Plural == "pods" {
			continue
		}
		strategies := []*kinds.Strategy{&resource.Storage.Strategy}
		for _, sub := range resource.Subresources {
			if sub.Update != nil {
				strategies = append(strategies, sub.Update)
			}
		}
		for range 30 {
			for _, s := range strategies {
				exercise(ctx, t, r, resource, s)
			}
		}
	}
}

func exercise(ctx context.Context, t *testing.T, r *rand.Rand, resource *kinds.Resource, s *kinds.Strategy) {
	t.Helper()
	obj, old := resource.New(), resource.New()
	sample.Fill(r, obj)
	sample.Fill(r, old)
	if s.Default != nil {
		s.Default(obj)
		once := encoded(t, obj)
		s.Default(obj)
		if diff := cmp.Diff(once, encoded(t, obj)); diff != "" {
			t.Fatalf("%s: defaults on top of defaults: %s", resource.Kind, diff)
		}
		s.Default(old)
	}
	if s.Allocate != nil {
		for _, pair := range [][2]kinds.Object{{copied(obj), nil}, {copied(obj), old}, {nil, old}} {
			_, _, _ = s.Allocate.Plan(ctx, pair[0], pair[1], pools{}, false)
		}
	}
	before := encoded(t, old)
	if s.PrepareForUpdate != nil {
		s.PrepareForUpdate(ctx, copied(obj), old)
	}
	if s.ValidateUpdate != nil {
		_ = s.ValidateUpdate(ctx, obj, old).ToAggregate()
	}
	if s.Warnings != nil {
		s.Warnings(ctx, obj, old)
	}
	if after := encoded(t, old); after != before {
		t.Fatalf("%s: an update changed the old object: %s", resource.Kind, cmp.Diff(before, after))
	}
	if s.PrepareForCreate != nil {
		s.PrepareForCreate(ctx, obj)
	}
	if s.Validate != nil {
		_ = s.Validate(ctx, obj).ToAggregate()
	}
	if s.Warnings != nil {
		s.Warnings(ctx, obj, nil)
	}
	if resource.Columns.Cells != nil {
		resource.Columns.Cells(obj, time.Now())
	}
}

func copied(obj kinds.Object) kinds.Object { return obj.DeepCopyObject().(kinds.Object) }

func encoded(t *testing.T, obj kinds.Object) string {
	t.Helper()
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSecretText(t *testing.T) {
	s := &corev1.Secret{Data: map[string][]byte{"a": []byte("old"), "b": []byte("kept")}, StringData: map[string]string{"a": "new"}}
	core.Secret.Default(s)
	if string(s.Data["a"]) != "new" || string(s.Data["b"]) != "kept" || s.StringData != nil || s.Type != corev1.SecretTypeOpaque {
		t.Errorf("got %v, %q", s.Data, s.Type)
	}
}

func TestErrorsHideSecrets(t *testing.T) {
	s := &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("hunter2")}}
	err := core.Secret.Validate(context.Background(), s).ToAggregate()
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestFrozen(t *testing.T) {
	yes, no := true, false
	old := &corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"a": "1"}}
	for _, c := range []struct {
		name string
		obj  *corev1.ConfigMap
		errs int
	}{
		{"unchanged", &corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"a": "1"}}, 0},
		{"thawed", &corev1.ConfigMap{Immutable: &no, Data: map[string]string{"a": "1"}}, 1},
		{"changed", &corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"a": "2"}}, 1},
		{"thawed and changed", &corev1.ConfigMap{Data: map[string]string{"a": "2"}, BinaryData: map[string][]byte{"b": nil}}, 3},
	} {
		if errs := core.ConfigMap.ValidateUpdate(context.Background(), c.obj, old); len(errs) != c.errs {
			t.Errorf("%s: %v", c.name, errs)
		}
	}
}

func TestNamespaceLabel(t *testing.T) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "other"}}}
	core.Namespace.Default(n)
	core.Namespace.PrepareForCreate(context.Background(), n)
	if n.Labels[corev1.LabelMetadataName] != "shop" || n.Status.Phase != corev1.NamespaceActive ||
		len(n.Spec.Finalizers) != 1 || n.Spec.Finalizers[0] != corev1.FinalizerKubernetes {
		t.Errorf("got %+v", n)
	}
	generated := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	if core.Namespace.Default(generated); len(generated.Labels) != 0 {
		t.Errorf("a namespace without a name has labels %v", generated.Labels)
	}
}

func TestEndpointsCell(t *testing.T) {
	e := &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
		Ports:     []corev1.EndpointPort{{Port: 80}, {Port: 81}},
	}}}
	if got := core.EndpointsColumns.Cells(e, time.Now())[1]; got != "10.0.0.1:80,[fd00::1]:80,10.0.0.1:81 + 1 more..." {
		t.Errorf("got %v", got)
	}
}

func TestEventSource(t *testing.T) {
	var source func([]byte) string
	for _, f := range core.EventFields {
		if f.Label == "source" {
			source = f.Func
		}
	}
	for encoded, want := range map[string]string{
		`{"source":{"component":"kubelet"},"reportingComponent":"other"}`: "kubelet",
		`{"source":{},"reportingComponent":"other"}`:                      "other",
		`{}`:  "",
		`{"]`: "",
	} {
		if got := source([]byte(encoded)); got != want {
			t.Errorf("%s: %q", encoded, got)
		}
	}
}
