package controllerruntime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rowlock/rowlock/server/rowlocktest"
)

// start starts a server that has the custom kind, of the release that the variable ROWLOCK_RELEASE names.
func start(t *testing.T, more ...rowlocktest.Option) (*rowlocktest.Server, client.Client) {
	t.Helper()
	if release := os.Getenv("ROWLOCK_RELEASE"); release != "" {
		more = append([]rowlocktest.Option{rowlocktest.Release(release)}, more...)
	}
	srv := rowlocktest.Start(t, append(more, rowlocktest.Definitions(definition()))...)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(srv.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return srv, c
}

// runManager runs the controllers, which one leader does, until the test ends.
func runManager(t *testing.T, cfg *rest.Config) {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "greetings", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := addControllers(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "d"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}

// TestManager: a manager reconciles a custom resource, and a built-in one.
func TestManager(t *testing.T) {
	srv, c := start(t)
	runManager(t, srv.Config())
	g := &Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice"}}
	g.Spec.Name = "Alice"
	if err := c.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if g.Spec.Times != 2 {
		t.Errorf("the default is %d", g.Spec.Times)
	}
	if err := c.Create(t.Context(), deployment()); err != nil {
		t.Fatal(err)
	}
	rowlocktest.Eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		var m corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(g), &m); err != nil {
			return err
		}
		if g.Status.Said != 2 || m.Data["greeting1"] != "hello, Alice" || len(m.OwnerReferences) != 1 {
			return fmt.Errorf("%+v, %+v", g.Status, m)
		}
		var d appsv1.Deployment
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "d"}, &d); err != nil {
			return err
		}
		if d.Annotations["maps"] == "" || d.Spec.Template.Spec.Containers[0].ImagePullPolicy != "Always" {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
}

// TestRules: the rules of a definition hold.
func TestRules(t *testing.T) {
	_, c := start(t)
	for name, valid := range map[string]bool{"Alice": true, "alice": false, "Nobody": false} {
		g := &Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "g-"}}
		g.Spec.Name = name
		err := c.Create(t.Context(), g)
		if valid && err != nil || !valid && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "capital letter")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestApply: fields have their owners.
func TestApply(t *testing.T) {
	_, c := start(t)
	d := deployment()
	if err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	const patch = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},
		"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]},{"name":"side","image":"j"}]}}}}`
	if err := c.Patch(t.Context(), d, client.RawPatch(types.ApplyPatchType, []byte(patch)), client.FieldOwner("applier"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	containers := d.Spec.Template.Spec.Containers
	if *d.Spec.Replicas != 3 || len(containers) != 2 || containers[0].Image != "i" || len(containers[0].Env) != 1 {
		t.Errorf("%+v", d.Spec)
	}
	if !slices.ContainsFunc(d.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == "applier" && m.Operation == "Apply" }) {
		t.Errorf("%+v", d.ManagedFields)
	}
}

// TestClaims: devices are claimed in a version that newer releases have no types of.
func TestClaims(t *testing.T) {
	_, c := start(t, rowlocktest.Release("1.32"), rowlocktest.FeatureGates("DynamicResourceAllocation=true"), rowlocktest.RuntimeConfig("resource.k8s.io/v1alpha3=true", "resource.k8s.io/v1beta1=true"))
	slice := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceSlice", "metadata": map[string]any{"name": "s"},
		"spec": map[string]any{
			"driver": "d.example.com", "nodeName": "n", "pool": map[string]any{"name": "p", "generation": int64(1), "resourceSliceCount": int64(1)},
			"devices": []any{map[string]any{"name": "a", "basic": map[string]any{
				"attributes": map[string]any{"size": map[string]any{"int": int64(3)}}, "capacity": map[string]any{"memory": "4Gi"},
			}}},
		},
	}}
	if err := c.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]any{"v1alpha3": "4Gi", "v1beta1": map[string]any{"value": "4Gi"}} {
		got := &unstructured.Unstructured{}
		got.SetAPIVersion("resource.k8s.io/" + version)
		got.SetKind("ResourceSlice")
		if err := c.Get(t.Context(), types.NamespacedName{Name: "s"}, got); err != nil {
			t.Fatal(err)
		}
		devices, _, err := unstructured.NestedSlice(got.Object, "spec", "devices")
		if err != nil || len(devices) != 1 {
			t.Fatalf("%v, %v", got.Object, err)
		}
		basic, _, err := unstructured.NestedMap(devices[0].(map[string]any), "basic")
		if err != nil {
			t.Fatal(err)
		}
		capacity, _ := basic["capacity"].(map[string]any)
		if !reflect.DeepEqual(capacity["memory"], want) {
			t.Errorf("%s: %v", version, basic)
		}
	}
}

// TestNewerFields: a field that the server's release does not have is dropped, and refused in an apply, whatever the
// client's types have. Nothing else that a write does depends on it.
func TestNewerFields(t *testing.T) {
	_, c := start(t)
	release := os.Getenv("ROWLOCK_RELEASE")
	for field, f := range map[string]struct {
		value any
		has   bool
	}{
		"hostnameOverride":   {"other", release == "1.34" || release == "1.35" || release == "1.36"},
		"evictionResponders": {[]any{map[string]any{"name": "example.com/drain", "priority": int64(20000)}}, false}, // since 1.37
	} {
		name := strings.ToLower(field)
		value, err := json.Marshal(f.value)
		if err != nil {
			t.Fatal(err)
		}
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": "default"},
			"spec": map[string]any{field: f.value, "containers": []any{map[string]any{"name": "c", "image": "i"}}},
		}}
		if err := c.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		stored := func() bool {
			_, has, err := unstructured.NestedFieldNoCopy(pod.Object, "spec", field)
			return has && err == nil
		}
		if stored() != f.has {
			t.Errorf("created: %v", pod.Object["spec"])
		}
		for n, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
			seconds := int64(50 - n)
			patch := fmt.Sprintf(`{"spec":{%q:%s,"activeDeadlineSeconds":%d}}`, field, value, seconds)
			if err := c.Patch(t.Context(), pod, client.RawPatch(kind, []byte(patch))); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if now, _, _ := unstructured.NestedInt64(pod.Object, "spec", "activeDeadlineSeconds"); now != seconds || stored() != f.has {
				t.Errorf("%s: %v", kind, pod.Object["spec"])
			}
		}
		applied := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default"},"spec":{%q:%s,"containers":[{"name":"c","image":"j"}]}}`, name, field, value)
		err = c.Patch(t.Context(), pod, client.RawPatch(types.ApplyPatchType, []byte(applied)), client.FieldOwner("applier"), client.ForceOwnership)
		if (err == nil) != f.has {
			t.Errorf("apply of %s: %v", field, err)
		}
		if err != nil && !strings.Contains(err.Error(), "field not declared in schema") {
			t.Errorf("apply of %s: %v", field, err)
		}
	}
}

// TestDiscovery: the server serves the APIs and documents of its release, whatever types the module has.
func TestDiscovery(t *testing.T) {
	for release, r := range map[string]struct {
		gates []string
		names []string // of definitions that newer modules have no types of
	}{
		"1.32": {
			[]string{"DynamicResourceAllocation=true", "StorageVersionMigrator=true"},
			[]string{"io.k8s.api.resource.v1alpha3.BasicDevice", "io.k8s.api.storagemigration.v1alpha1.StorageVersionMigration"},
		},
		"1.36": {
			[]string{"AllAlpha=true", "AllBeta=true"},
			[]string{"io.k8s.api.scheduling.v1alpha2.Workload", "io.k8s.api.scheduling.v1alpha2.PodGroup", "io.k8s.api.resource.v1.NodeAllocatableResourceMapping"},
		},
	} {
		t.Run(release, func(t *testing.T) {
			srv, c := start(t, rowlocktest.Release(release), rowlocktest.FeatureGates(r.gates...), rowlocktest.RuntimeConfig("api/all=true"))
			discover(t, srv, c, append(r.names, "io.k8s.api.apps.v1.Deployment", "com.example.greetings.v1.Greeting"))
		})
	}
}

// discover lists all resources, and reads all documents, which have the definitions of some names.
func discover(t *testing.T, srv *rowlocktest.Server, c client.Client, want []string) {
	t.Helper()
	client := discovery.NewDiscoveryClientForConfigOrDie(srv.Config())
	groups, lists, err := client.ServerGroupsAndResources()
	if err != nil || len(groups) < 20 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	served := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			served++
			all := &unstructured.UnstructuredList{}
			all.SetGroupVersionKind(gv.WithKind(r.Kind + "List"))
			if err := c.List(t.Context(), all); err != nil {
				t.Errorf("%s %s: %v", gv, r.Name, err)
			}
		}
	}
	if served < 60 {
		t.Errorf("%d resources can be listed", served)
	}
	document, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range document.GetDefinitions().GetAdditionalProperties() {
		names[d.GetName()] = true
	}
	for _, name := range want {
		if !names[name] {
			t.Errorf("the document does not have %s", name)
		}
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range paths {
		if _, err := path.Schema("application/json"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
