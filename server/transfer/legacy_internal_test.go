package transfer

import (
	"bytes"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	appsv1beta1 "k8s.io/api/apps/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/release"
	older "github.com/rowlock/rowlock/server/transfer/legacyapi"
)

// TestAlike: another Go type, that of a served version or one of package past, reads the same from a message
// of the past as the type of k8s.io/api.
func TestAlike(t *testing.T) {
	l, types, random := newLayout(""), sample.Scheme(), rand.New(rand.NewSource(1))
	read := map[string]bool{}
	for _, kind := range sample.Kinds(types) {
		now, ok := likeness(kind)
		if typed := l.ofPast(kind); typed != nil && strings.HasSuffix(reflect.TypeOf(typed).Elem().PkgPath(), "/transfer/legacyapi") {
			now, ok = kind.GroupKind().WithVersion("v1"), true
		}
		served := l.catalogue.LookupKind(now)
		if kind.Kind == "Ingress" { // the version of extensions, too, is read by a type of the past
			served = l.catalogue.LookupKind(schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"})
		}
		if !ok || served == nil {
			continue
		}
		home := l.catalogue.ByStorage(served.Storage.Key)
		read[kind.GroupVersion().String()], read[kind.String()] = true, true
		for i := range 40 {
			typed, err := types.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 { // the first is empty
				sample.Fill(random, typed)
				release.Default.View().Clear(typed)
			}
			typed.(metav1.Object).SetManagedFields(nil)
			typed.GetObjectKind().SetGroupVersionKind(kind)
			message, err := l.protobuf.Encode(nil, typed)
			if err != nil {
				t.Fatal(kind, err)
			}
			if typed, err = types.New(kind); err != nil {
				t.Fatal(err)
			}
			if _, err := l.protobuf.Decode(message, typed, codecs.Ignore); err != nil { // an empty field is absent in a message
				t.Fatal(kind, err)
			}
			got, unknown, err := l.decode(home, message)
			typed.GetObjectKind().SetGroupVersionKind(kind)
			want, _, wantErr := l.decode(home, mustEncode(t, l, typed))
			if err != nil || wantErr != nil || len(unknown) > 0 {
				t.Fatalf("%s: %v, %v, unknown %q", kind, err, wantErr, unknown)
			}
			a, b := mustEncode(t, l, got), mustEncode(t, l, want)
			if !bytes.Equal(a, b) {
				t.Fatalf("%s:\n%s\n%s", kind, a, b)
			}
		}
	}
	typeless := map[string]bool{"autoscaling/v2beta2": true, "scheduling.k8s.io/v1alpha1": true} // that the libraries no longer have
	for gv := range alike {
		if !read[gv.String()] && !typeless[gv.String()] {
			t.Errorf("%s: no kind of it was read", gv)
		}
	}
	for kind := range alikeKinds {
		if !read[kind.String()] {
			t.Errorf("%s was not read", kind)
		}
	}
	scheme := runtime.NewScheme()
	if err := older.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind := range scheme.AllKnownTypes() {
		if !read[kind.String()] {
			t.Errorf("%s was not read", kind)
		}
	}
}

// TestOldFields: fields that the Go type of apps/v1 lacks are transferred, and not reported as lost.
func TestOldFields(t *testing.T) {
	l := newLayout("")
	for _, c := range []struct {
		obj   runtime.Object
		kind  schema.GroupVersionKind
		holds string
	}{
		{&extensionsv1beta1.Deployment{Spec: extensionsv1beta1.DeploymentSpec{RollbackTo: &extensionsv1beta1.RollbackConfig{Revision: 7}}}, extensionsv1beta1.SchemeGroupVersion.WithKind("Deployment"), `"deprecated.deployment.rollback.to":"7"`},
		{&appsv1beta1.Deployment{Spec: appsv1beta1.DeploymentSpec{RollbackTo: &appsv1beta1.RollbackConfig{}}}, appsv1beta1.SchemeGroupVersion.WithKind("Deployment"), `"deprecated.deployment.rollback.to":"0"`},
		{&extensionsv1beta1.DaemonSet{Spec: extensionsv1beta1.DaemonSetSpec{TemplateGeneration: 1 << 40}}, extensionsv1beta1.SchemeGroupVersion.WithKind("DaemonSet"), `"deprecated.daemonset.template.generation":"1099511627776"`},
	} {
		c.obj.GetObjectKind().SetGroupVersionKind(c.kind)
		message, err := l.protobuf.Encode(nil, c.obj)
		if err != nil {
			t.Fatal(err)
		}
		home := l.catalogue.LookupKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: c.kind.Kind})
		got, unknown, err := l.decode(home, message)
		if err != nil || len(unknown) > 0 || !bytes.Contains(mustEncode(t, l, got), []byte(c.holds)) {
			t.Errorf("%s: %v, lost %q, no %s in %s", c.kind, err, unknown, c.holds, mustEncode(t, l, got))
		}
		for i := range message { // a truncated message is refused, or read without the rest
			_, _, _ = l.decode(home, message[:i])
		}
	}
}

func mustEncode(t *testing.T, l *layout, obj runtime.Object) []byte {
	t.Helper()
	out, err := l.json.Encode(nil, obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
