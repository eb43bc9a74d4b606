package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

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
	c, err := dynamic.NewForConfig(restConfig(t, s, ""))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// follower is an informer and the way to what it should show. Its handler sees to it
// that no object goes back.
type follower struct {
	name     string
	lw       *cache.ListWatch
	informer cache.SharedIndexInformer

	mu    sync.Mutex
	seen  map[string]uint64
	wrong error
}

func newFollower(t *testing.T, name string, k specimen, lw *cache.ListWatch, kind runtime.Object) *follower {
	f := &follower{name: fmt.Sprintf("%s, %s", k.gvr.GroupResource(), name), lw: lw, seen: map[string]uint64{}}
	f.informer = cache.NewSharedIndexInformer(lw, kind, 0, cache.Indexers{})
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.note(watch.Added, obj) },
		UpdateFunc: func(_, obj any) { f.note(watch.Modified, obj) },
		DeleteFunc: func(obj any) {
			if unseen, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unseen.Obj // the last known state
			}
			f.note(watch.Deleted, obj)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *follower) note(kind watch.EventType, obj any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := newChange(kind, obj)
	switch {
	case err != nil:
		f.wrong = err
	case c.version < f.seen[c.name] || kind == watch.Added && c.version == f.seen[c.name]:
		f.wrong = fmt.Errorf("%s after %d", c, f.seen[c.name])
	default:
		f.seen[c.name] = c.version
	}
}

// informerForms make the list and watch of a kind in each wire form, and an object of
// what comes.
func informerForms() map[string]func(cfg *rest.Config, k specimen) (*cache.ListWatch, runtime.Object, error) {
	typed := func(contentType string) func(*rest.Config, specimen) (*cache.ListWatch, runtime.Object, error) {
		return func(cfg *rest.Config, k specimen) (*cache.ListWatch, runtime.Object, error) {
			cfg = rest.CopyConfig(cfg)
			gv := k.gvr.GroupVersion()
			cfg.ContentType, cfg.GroupVersion, cfg.NegotiatedSerializer = contentType, &gv, scheme.Codecs.WithoutConversion()
			if cfg.APIPath = "/apis"; gv.Group == "" {
				cfg.APIPath = "/api"
			}
			c, err := rest.RESTClientFor(cfg)
			if err != nil {
				return nil, nil, err
			}
			return cache.NewListWatchFromClient(c, k.gvr.Resource, "default", fields.Everything()), k.obj, nil
		}
	}
	return map[string]func(*rest.Config, specimen) (*cache.ListWatch, runtime.Object, error){
		"JSON":     typed("application/json"),
		"Protobuf": typed("application/vnd.kubernetes.protobuf"),
		"CBOR": func(cfg *rest.Config, k specimen) (*cache.ListWatch, runtime.Object, error) {
			c, err := dynamic.NewForConfig(cfg)
			if err != nil {
				return nil, nil, err
			}
			r := c.Resource(k.gvr).Namespace("default")
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(k.obj.GetObjectKind().GroupVersionKind())
			return &cache.ListWatch{
				ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
					return r.List(context.Background(), o)
				},
				WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) { return r.Watch(context.Background(), o) },
			}, u, nil
		},
	}
}

// TestInformersStayInStep runs informers for ten kinds in three wire forms, with lists
// and with streaming lists, under random writes of several clients, stops and kills
// servers in the middle, and expects every informer to end with exactly the objects of a
// list. For longer than usual it has two servers on PostgreSQL, too.
func TestInformersStayInStep(t *testing.T) {
	allowCBOR(t)
	long, asked := stormTime(t, 12*time.Second)
	pace := 10 * time.Millisecond
	args := []string{"--feature-gates=CBORServingAndStorage=true"}
	clusters := map[string]*cluster{"a server on SQLite": startCluster(t, "", 1, args...)}
	if asked {
		pace = 100 * time.Millisecond
		clusters["two servers on PostgreSQL"] = startCluster(t, newDatabase(t, sharedPostgres(t)), 2, append(args, "--history-retention=4s")...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	followers := map[*cluster][]*follower{}
	for _, streamed := range []bool{false, true} {
		// Each informer looks at the gate when it starts.
		featuretesting.SetFeatureDuringTest(t, features.WatchListClient, streamed)
		for _, c := range clusters {
			followers[c] = append(followers[c], startInformers(ctx, t, &running, c, streamed)...)
		}
		for _, f := range slices.Concat(slices.Collect(maps.Values(followers))...) {
			if !cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
				t.Fatalf("%s: does not sync", f.name)
			}
		}
	}
	for name, c := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.t = t
			storm, stop := context.WithTimeout(ctx, long)
			defer stop()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var wg sync.WaitGroup
			for w := range 4 {
				client := dynamicClient(t, c.server(w))
				wg.Go(func() { randomWrites(storm, client, pace, rand.New(rand.NewPCG(seed, uint64(w)))) })
			}
			restarts := restartServers(c, long)
			wg.Wait()
			for _, f := range followers[c] {
				compareInformer(t, f)
			}
			t.Logf("%d informers, %d restarts", len(followers[c]), restarts)
		})
	}
}

// startInformers runs an informer of each kind in each wire form, at the servers by turns.
func startInformers(ctx context.Context, t *testing.T, running *sync.WaitGroup, c *cluster, streamed bool) (followers []*follower) {
	for form, listWatch := range informerForms() {
		for i, k := range specimens() {
			lw, kind, err := listWatch(restConfig(t, c.server(i), ""), k)
			if err != nil {
				t.Fatal(err)
			}
			f := newFollower(t, fmt.Sprintf("%s, streamed %v", form, streamed), k, lw, kind)
			followers = append(followers, f)
			running.Go(func() { f.informer.Run(ctx.Done()) })
		}
	}
	return followers
}

func randomWrites(ctx context.Context, client dynamic.Interface, pace time.Duration, r *rand.Rand) {
	kinds := specimens()
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
		pause := pace
		if err != nil {
			// Conflicts and absences are part of the game; while the server is away, do not spin.
			pause = pace / 10
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func compareInformer(t *testing.T, f *follower) {
	t.Helper()
	var diff string
	// An informer that lost its connection comes back with a growing pause, up to a
	// minute; and a write whose client gave up may still be on its way.
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		list, err := f.lw.List(metav1.ListOptions{})
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			return
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		want, got := map[string]content{}, map[string]content{}
		note := func(to map[string]content, obj any) {
			c, err := newChange(watch.Added, obj)
			if err != nil {
				t.Fatal(err)
			}
			to[c.name] = c.content
		}
		for _, item := range items {
			note(want, item)
		}
		for _, obj := range f.informer.GetStore().List() {
			note(got, obj)
		}
		if diff = contentDiff(want, got); diff == "" {
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff != "" || f.wrong != nil {
		t.Errorf("%s: %s %v", f.name, diff, f.wrong)
	}
}
