package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/e2e/harness"
)

// How long TestReflectors writes. A restart every ten seconds, and history that is
// gone after two, make a minute of it worth hours of a cluster.
const reflectorsVariable = "ROWLOCK_REFLECTORS"

// restConfig is the administrator's, in a content type.
func restConfig(t testing.TB, s *harness.Server, contentType string) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Host = s.URL // servers that share a folder share its kubeconfig
	cfg.QPS, cfg.Burst = -1, -1
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.ContentType = contentType
	if contentType != "" {
		cfg.AcceptContentTypes = contentType + ",application/json"
	}
	return cfg
}

// watchers make a ListWatch in one wire form.
type watchers struct {
	name string
	make func(t *testing.T, s *harness.Server) (list func(context.Context, metav1.ListOptions) (runtime.Object, error), watch func(context.Context, metav1.ListOptions) (watch.Interface, error), expected runtime.Object)
}

func reflectorForms() []watchers {
	typed := func(contentType string) func(*testing.T, *harness.Server) (func(context.Context, metav1.ListOptions) (runtime.Object, error), func(context.Context, metav1.ListOptions) (watch.Interface, error), runtime.Object) {
		return func(t *testing.T, s *harness.Server) (func(context.Context, metav1.ListOptions) (runtime.Object, error), func(context.Context, metav1.ListOptions) (watch.Interface, error), runtime.Object) {
			c, err := corev1client.NewForConfig(restConfig(t, s, contentType))
			if err != nil {
				t.Fatal(err)
			}
			r := c.ConfigMaps("default")
			return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) }, r.Watch, &corev1.ConfigMap{}
		}
	}
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	return []watchers{
		{"JSON", typed("application/json")},
		{"Protobuf", typed("application/vnd.kubernetes.protobuf")},
		{"CBOR", func(t *testing.T, s *harness.Server) (func(context.Context, metav1.ListOptions) (runtime.Object, error), func(context.Context, metav1.ListOptions) (watch.Interface, error), runtime.Object) {
			featuretesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
			featuretesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, true)
			c, err := dynamic.NewForConfig(restConfig(t, s, ""))
			if err != nil {
				t.Fatal(err)
			}
			r := c.Resource(gvr).Namespace("default")
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) }, r.Watch, u
		}},
		{"metadata", func(t *testing.T, s *harness.Server) (func(context.Context, metav1.ListOptions) (runtime.Object, error), func(context.Context, metav1.ListOptions) (watch.Interface, error), runtime.Object) {
			c, err := metadata.NewForConfig(metadata.ConfigFor(restConfig(t, s, "")))
			if err != nil {
				t.Fatal(err)
			}
			r := c.Resource(gvr).Namespace("default")
			return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) }, r.Watch, &metav1.PartialObjectMetadata{}
		}},
	}
}

// TestReflectors runs reflectors in every wire form, with lists and with streaming
// lists, with and without a selector, on two servers of one database, while objects
// come, change, leave the selection and go, history is compacted all the time and
// servers are stopped and killed. Each must end with exactly what is stored, must
// never be taken back in time, and may list anew only when it has reason to.
func TestReflectors(t *testing.T) {
	long := 9 * time.Second
	if v := os.Getenv(reflectorsVariable); v != "" {
		var err error
		if long, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	pg := startPostgres(t)
	c := startCluster(t, newDatabase(t, pg), 2, "--history-retention=2s", "--feature-gates=CBORServingAndStorage=true")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var mirrors []*mirror
	for i := range 2 {
		for _, form := range reflectorForms() {
			for _, streamed := range []bool{false, true} {
				for _, selector := range []string{"", "on=yes"} {
					name := fmt.Sprintf("server %d, %s, streamed %v, selector %q", i, form.name, streamed, selector)
					mirrors = append(mirrors, startReflector(ctx, t, &wg, c.server(i), form, streamed, name, selector))
				}
			}
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	storm, stop := context.WithTimeout(ctx, long)
	defer stop()
	var writers sync.WaitGroup
	var written atomic.Int64
	for w := range 4 {
		writers.Go(func() { writeConfigMaps(storm, t, c, w, rand.New(rand.NewPCG(seed, uint64(w))), &written) })
	}
	restarts := 0
	for end := time.Now().Add(long - 3*time.Second); time.Now().Before(end); restarts++ {
		pause := time.NewTimer(min(10*time.Second, long/3))
		<-pause.C
		if i := restarts % 2; restarts%4 < 2 {
			if err := c.server(i).Stop(); err != nil {
				t.Error(err)
			}
			c.again(i)
		} else {
			c.server(i).Kill()
			c.again(i)
		}
	}
	writers.Wait()
	compareMirrors(t, c, mirrors)
	want(t, newAPI(t, c.server(0)), 410, "GET", configMaps+"?resourceVersionMatch=Exact&resourceVersion=200", "", "") // compaction has come by
	most := 0
	for _, m := range mirrors {
		n := m.listed()
		most = max(most, n)
		// One at the beginning, and one after a restart in which history went. Of the
		// restarts half are of the other server.
		if n > 2+restarts {
			t.Errorf("%s: %d lists, %d restarts", m.name, n, restarts)
		}
	}
	t.Logf("%d writes, %d restarts, at most %d lists a reflector", written.Load(), restarts, most)
}

func writeConfigMaps(ctx context.Context, t *testing.T, c *cluster, w int, r *rand.Rand, written *atomic.Int64) {
	var clients [2]corev1client.ConfigMapInterface
	for i := range clients {
		k, err := corev1client.NewForConfig(restConfig(t, c.server(i), "application/vnd.kubernetes.protobuf"))
		if err != nil {
			t.Error(err)
			return
		}
		clients[i] = k.ConfigMaps("default")
	}
	for ctx.Err() == nil {
		maps := clients[r.IntN(2)]
		name := fmt.Sprintf("r%d", r.IntN(60))
		on := []string{"yes", "no"}[r.IntN(2)]
		var err error
		switch r.IntN(5) {
		case 0, 1:
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"on": on}}}, metav1.CreateOptions{})
		case 2, 3:
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"on":%q}},"data":{"n":"%d"}}`, on, r.Uint32())
			_, err = maps.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		case 4:
			err = maps.Delete(ctx, name, metav1.DeleteOptions{})
		}
		var status apierrors.APIStatus
		switch {
		case err == nil:
			written.Add(1)
			time.Sleep(2 * time.Millisecond) // a cluster, not a benchmark
		case !errors.As(err, &status):
			time.Sleep(20 * time.Millisecond) // the server is away
		}
	}
}

// compareMirrors waits until every mirror shows exactly what a list says. What is the
// server's to do is done within seconds, however long the test has run; the time in
// which a reflector pauses is its own.
func compareMirrors(t *testing.T, c *cluster, mirrors []*mirror) {
	k, err := corev1client.NewForConfig(restConfig(t, c.server(0), "application/json"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for _, m := range mirrors {
		var diff string
		for first := true; first || diff != "" && m.mayWait(begun); first = false {
			list, err := k.ConfigMaps("default").List(context.Background(), metav1.ListOptions{LabelSelector: m.selector})
			if err != nil {
				t.Fatal(err)
			}
			want, got := map[string]string{}, map[string]string{}
			for i := range list.Items {
				want[list.Items[i].Name] = list.Items[i].ResourceVersion
			}
			for _, obj := range m.List() {
				if acc, err := meta.Accessor(obj); err == nil {
					got[acc.GetName()] = acc.GetResourceVersion()
				}
			}
			if diff = mapDiff(want, got); diff != "" {
				time.Sleep(50 * time.Millisecond)
			}
		}
		if wrong := m.failure(); diff != "" || wrong != nil {
			t.Errorf("%s: %s %v\n%s", m.name, diff, wrong, m.account())
		}
	}
	t.Logf("all mirrors compared after %s", time.Since(begun).Round(time.Millisecond))
}
