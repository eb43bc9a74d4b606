package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/e2e/harness"
)

// specimen is one kind that the storm writes.
type specimen struct {
	gvr schema.GroupVersionResource
	obj runtime.Object
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
	}
}

func specimens() []specimen {
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	once := podTemplate()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	return []specimen{
		{gvr("", "v1", "configmaps"), &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}}},
		{gvr("", "v1", "secrets"), &corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}}},
		{gvr("", "v1", "services"), &corev1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}},
		{gvr("", "v1", "serviceaccounts"), &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{Kind: "ServiceAccount", APIVersion: "v1"}}},
		{gvr("apps", "v1", "deployments"), &appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, Spec: appsv1.DeploymentSpec{Selector: selector, Template: podTemplate()}}},
		{gvr("batch", "v1", "jobs"), &batchv1.Job{TypeMeta: metav1.TypeMeta{Kind: "Job", APIVersion: "batch/v1"}, Spec: batchv1.JobSpec{Template: once}}},
		{gvr("coordination.k8s.io", "v1", "leases"), &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}}},
		{gvr("networking.k8s.io", "v1", "networkpolicies"), &networkingv1.NetworkPolicy{TypeMeta: metav1.TypeMeta{Kind: "NetworkPolicy", APIVersion: "networking.k8s.io/v1"}}},
		{gvr("policy", "v1", "poddisruptionbudgets"), &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{Kind: "PodDisruptionBudget", APIVersion: "policy/v1"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}},
		{gvr("rbac.authorization.k8s.io", "v1", "roles"), &rbacv1.Role{TypeMeta: metav1.TypeMeta{Kind: "Role", APIVersion: "rbac.authorization.k8s.io/v1"}}},
	}
}

func dynamicClient(t testing.TB, s *harness.Server) dynamic.Interface {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS, cfg.Burst = -1, -1
	cfg.WarningHandler = rest.NoWarnings{}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestInformersStayInStep runs informers for ten kinds under random writes of 16
// clients, restarts the server in the middle (once by SIGTERM, once by SIGKILL),
// and expects every informer to end equal to what a list says.
func TestInformersStayInStep(t *testing.T) {
	s := harness.StartT(t, harness.Options{})
	kinds := specimens()
	client := dynamicClient(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informers := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for _, k := range kinds {
		informers[k.gvr] = factory.ForResource(k.gvr).Informer()
	}
	factory.Start(ctx.Done())
	for gvr, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			t.Fatalf("%s: informer does not sync", gvr)
		}
	}
	stormCtx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	var wg sync.WaitGroup
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for w := range 16 {
		wg.Go(func() { randomWrites(stormCtx, client, kinds, rand.New(rand.NewPCG(seed, uint64(w)))) })
	}
	restart := func(end func()) {
		end()
		again, err := s.Again(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		s = again
		t.Cleanup(s.Kill)
	}
	time.Sleep(10 * time.Second)
	restart(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("SIGTERM: %v", err)
		}
	})
	time.Sleep(10 * time.Second)
	restart(s.Kill)
	wg.Wait()
	for _, k := range kinds {
		compareInformer(t, ctx, client, k.gvr, informers[k.gvr])
	}
}

func randomWrites(ctx context.Context, client dynamic.Interface, kinds []specimen, r *rand.Rand) {
	for ctx.Err() == nil {
		k := kinds[r.IntN(len(kinds))]
		name := fmt.Sprintf("x%d", r.IntN(40))
		res := client.Resource(k.gvr).Namespace("default")
		var err error
		switch r.IntN(4) {
		case 0, 1:
			content, cerr := runtime.DefaultUnstructuredConverter.ToUnstructured(k.obj)
			if cerr != nil {
				panic(cerr)
			}
			u := &unstructured.Unstructured{Object: content}
			u.SetName(name)
			_, err = res.Create(ctx, u, metav1.CreateOptions{})
		case 2:
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, r.IntN(1000))
			_, err = res.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		case 3:
			err = res.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil {
			// Conflicts and absences are part of the game; while the server is away, do not spin.
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}
}

func compareInformer(t *testing.T, ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, inf cache.SharedIndexInformer) {
	t.Helper()
	var diff string
	// An informer that lost its connection comes back with a growing pause, up to
	// 30 s; and a write whose client gave up may still be on its way.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Errorf("%s: %v", gvr, err)
			return
		}
		want, got := map[string]string{}, map[string]string{}
		for i := range list.Items {
			want[list.Items[i].GetNamespace()+"/"+list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
		}
		for _, o := range inf.GetStore().List() {
			u := o.(*unstructured.Unstructured)
			got[u.GetNamespace()+"/"+u.GetName()] = u.GetResourceVersion()
		}
		if diff = mapDiff(want, got); diff == "" {
			return
		}
	}
	t.Errorf("%s: informer differs: %s", gvr, diff)
}

func mapDiff(want, got map[string]string) string {
	for k, v := range want {
		if got[k] != v {
			return fmt.Sprintf("%s: listed at %q, informer has %q", k, v, got[k])
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			return fmt.Sprintf("%s at %q is not listed", k, v)
		}
	}
	return ""
}
