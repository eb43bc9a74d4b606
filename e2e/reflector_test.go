package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
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

// How long reflectors and informers are written for. With a restart every minute, with
// history that is gone after seconds, and with clocks of haste, twenty minutes of it are
// worth hours of a cluster.
const reflectorsVariable = "ROWLOCK_REFLECTORS"

func stormTime(t *testing.T, usual time.Duration) (long time.Duration, asked bool) {
	v := os.Getenv(reflectorsVariable)
	if v == "" {
		return usual, false
	}
	long, err := time.ParseDuration(v)
	if err != nil {
		t.Fatal(err)
	}
	return long, true
}

// restConfig returns the administrator's, in a content type.
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

// allowCBOR makes dynamic clients use CBOR until the test ends, and has its decoder see
// the Go types that come before several goroutines use it: what it remembers of a type
// is written while others read it at the first use (kubernetes issue 129169).
func allowCBOR(t *testing.T) {
	t.Helper()
	featuretesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	featuretesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, true)
	text, tree := new(string), new(any)
	for _, v := range []any{&metav1.WatchEvent{}, &metav1.Status{}, &metav1.DeleteOptions{}, "", text, &text, *tree, tree, map[string]any{}, int32(0), new(int32)} {
		if _, err := direct.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
}

// resource lists and watches the configmaps of a namespace.
type resource struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	kind  runtime.Object
}

// wireForm is a client of one wire form.
type wireForm struct {
	name    string
	asks    string // content type of the configuration
	answers string // what the content types of answers begin with
	client  func(*rest.Config) (resource, error)
}

func wireForms() []wireForm {
	typed := func(cfg *rest.Config) (resource, error) {
		c, err := corev1client.NewForConfig(cfg)
		if err != nil {
			return resource{}, err
		}
		r := c.ConfigMaps("default")
		return resource{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) }, r.Watch, &corev1.ConfigMap{}}, nil
	}
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	const protobuf = "application/vnd.kubernetes.protobuf"
	return []wireForm{
		{"JSON", "application/json", "application/json", typed},
		{"Protobuf", protobuf, protobuf, typed},
		{"CBOR", "", "application/cbor", func(cfg *rest.Config) (resource, error) {
			c, err := dynamic.NewForConfig(cfg)
			if err != nil {
				return resource{}, err
			}
			r := c.Resource(gvr).Namespace("default")
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			return resource{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) }, r.Watch, u}, nil
		}},
		{"metadata", "", protobuf, func(cfg *rest.Config) (resource, error) {
			c, err := metadata.NewForConfig(metadata.ConfigFor(cfg))
			if err != nil {
				return resource{}, err
			}
			r := c.Resource(gvr).Namespace("default")
			return resource{func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) }, r.Watch, &metav1.PartialObjectMetadata{}}, nil
		}},
	}
}

// TestReflectors runs reflectors in every wire form, with lists and with streaming
// lists, with and without a selector, quick and slow ones, at one server and at any of
// them, while objects come, change, leave the selection and go, history is compacted all
// the time and servers are stopped and killed. Each must see every change that it was
// there for, once and as it was, must never go back in time, may list anew only
// for a reason, and must end with exactly the stored objects. Watches are sent either way.
func TestReflectors(t *testing.T) {
	long, _ := stormTime(t, 9*time.Second)
	allowCBOR(t)
	pg := sharedPostgres(t)
	args := []string{"--history-retention=4s", "--feature-gates=CBORServingAndStorage=true"}
	t.Run("two servers on PostgreSQL", func(t *testing.T) {
		t.Parallel()
		runReflectors(t, startCluster(t, newDatabase(t, pg), 2, append(args[:len(args):len(args)], "--http2=standard")...), long)
	})
	t.Run("a server on SQLite", func(t *testing.T) {
		t.Parallel()
		runReflectors(t, startCluster(t, "", 1, append(args[:len(args):len(args)], "--http2=own")...), long)
	})
}

func runReflectors(t *testing.T, c *cluster, long time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	storm, calm := context.WithCancel(ctx)
	defer calm()
	var mirrors []*mirror
	start := func(form wireForm, streamed bool, m *mirror, servers ...*harness.Server) {
		m.name = fmt.Sprintf("%d: %d servers, %s, streamed %v, selector %q, slow %v", len(mirrors), len(servers), form.name, streamed, m.selector, m.lag != nil)
		startReflector(ctx, t, &wg, form, streamed, m, servers...)
		mirrors = append(mirrors, m)
	}
	longest := min(long/10, 20*time.Second)
	slow := func() { // 20 ms for an event, all at once
		if rand.IntN(int(longest/(40*time.Millisecond))) == 0 {
			wait, stop := context.WithTimeout(storm, rand.N(longest))
			<-wait.Done()
			stop()
		}
	}
	for f, form := range wireForms() {
		for i := range c.all {
			for _, streamed := range []bool{false, true} {
				for _, selector := range []string{"", "on=yes"} {
					start(form, streamed, &mirror{selector: selector}, c.server(i))
				}
			}
			start(form, f%2 == 0, &mirror{lag: slow}, c.server(i))
		}
		start(form, f%2 == 0, &mirror{}, slices.Clone(c.all)...)
		start(form, f%2 == 0, &mirror{selector: "on=never"}, slices.Clone(c.all)...)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	time.AfterFunc(long, calm)
	var writers sync.WaitGroup
	pace := 20 * time.Millisecond // a cluster, not a benchmark
	if long > time.Minute {
		pace = 100 * time.Millisecond
	}
	written := make([][]*change, 3)
	for w := range written {
		writers.Go(func() { written[w] = writeConfigMaps(storm, t, c, pace, rand.New(rand.NewPCG(seed, uint64(w)))) })
	}
	restarts := restartServers(c, long)
	writers.Wait()
	compareMirrors(t, c, mirrors)
	cancel()
	wg.Wait()
	checkLedger(t, mirrors, slices.Concat(written...))
	relists, expired, marks := 0, 0, 0
	for _, m := range mirrors {
		relists, expired, marks = relists+m.lists-1, expired+m.expired, marks+m.marks
		if m.lists > 1+m.reasons {
			t.Errorf("%s: %d lists, %d reasons\n%s", m.name, m.lists, m.reasons, m.account())
		}
	}
	t.Logf("%d reflectors, %d restarts, %d lists anew, %d versions that were gone, %d bookmarks", len(mirrors), restarts, relists, expired, marks)
	var status int
	for end := time.Now().Add(patience); status != 410 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		status, _, _ = newAPI(t, c.server(0)).do(context.Background(), "GET", configMaps+"?resourceVersionMatch=Exact&resourceVersion=200", "", "")
	}
	if status != 410 {
		t.Errorf("history is not compacted: %d", status)
	}
}

// restartServers stops and kills servers by turns: twice, or now and then for longer.
func restartServers(c *cluster, long time.Duration) (restarts int) {
	for end := time.Now().Add(long - 3*time.Second); time.Now().Before(end); restarts++ {
		pause := long / 3
		if long > time.Minute {
			pause = 5*time.Second + rand.N(95*time.Second)
		}
		<-time.After(pause)
		i := restarts % len(c.all)
		if (restarts+restarts/2)%2 == 0 {
			if err := c.server(i).Stop(); err != nil {
				c.t.Error(err)
			}
		} else {
			c.server(i).Kill()
		}
		c.again(i)
	}
	return restarts
}

// writeConfigMaps writes until ctx ends, and returns the acknowledged objects with a version.
func writeConfigMaps(ctx context.Context, t *testing.T, c *cluster, pace time.Duration, r *rand.Rand) (written []*change) {
	var clients []corev1client.ConfigMapInterface
	for i := range c.all {
		k, err := corev1client.NewForConfig(restConfig(t, c.server(i), "application/vnd.kubernetes.protobuf"))
		if err != nil {
			t.Error(err)
			return nil
		}
		clients = append(clients, k.ConfigMaps("default"))
	}
	for ctx.Err() == nil {
		maps := clients[r.IntN(len(clients))]
		name := fmt.Sprintf("r%d", r.IntN(60))
		on := []string{"yes", "no"}[r.IntN(2)]
		var obj *corev1.ConfigMap
		var err error
		switch r.IntN(5) {
		case 0, 1:
			obj, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"on": on}}}, metav1.CreateOptions{})
		case 2, 3:
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"on":%q}},"data":{"n":"%d","pad":%q}}`, on, r.Uint32(), strings.Repeat("x", r.IntN(2000)))
			obj, err = maps.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		case 4:
			err = maps.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err == nil && obj != nil {
			c, err := newChange("", obj)
			if err != nil {
				t.Error(err)
				return written
			}
			written = append(written, c)
		}
		var status apierrors.APIStatus
		if err == nil || !errors.As(err, &status) { // done, or the server is away
			time.Sleep(pace)
		}
	}
	return written
}

// compareMirrors waits until every mirror equals a list, and until bookmarks have brought
// those whose selectors match nothing to the revision of the latest write. The server
// takes seconds for that, however long the test has run; pauses of the reflectors do not
// count.
func compareMirrors(t *testing.T, c *cluster, mirrors []*mirror) {
	k, err := corev1client.NewForConfig(restConfig(t, c.server(0), "application/json"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	elsewhere := writeElsewhere(t, k)
	for _, m := range mirrors {
		var diff string
		for first := true; first || diff != "" && m.mayWait(begun); first = false {
			list, err := k.ConfigMaps("default").List(context.Background(), metav1.ListOptions{LabelSelector: m.selector})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]content{}
			for i := range list.Items {
				c, err := newChange(watch.Added, &list.Items[i])
				if err != nil {
					t.Fatal(err)
				}
				want[c.name] = c.content
			}
			if diff = contentDiff(want, m.content()); diff == "" && m.selector == "on=never" && !m.movedTo(elsewhere) {
				diff = fmt.Sprintf("no bookmark has moved its version to %d", elsewhere)
				writeElsewhere(t, k) // a list may just have brought it to the newest
			}
			if diff != "" {
				time.Sleep(50 * time.Millisecond)
			}
		}
		if wrong := m.failure(); diff != "" || wrong != nil {
			t.Errorf("%s: %s %v\n%s", m.name, diff, wrong, m.account())
		}
	}
	t.Logf("all mirrors compared after %s", time.Since(begun).Round(time.Millisecond))
}

// writeElsewhere changes an object of another kind that belongs to no namespace, and
// returns its version.
func writeElsewhere(t *testing.T, k corev1client.CoreV1Interface) uint64 {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"e2e.test/n":"%d"}}}`, rand.Uint64())
	ns, err := k.Namespaces().Patch(context.Background(), "default", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseUint(ns.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func contentDiff(want, got map[string]content) string {
	for name, c := range want {
		if g, ok := got[name]; !ok || !c.equal(g) {
			return fmt.Sprintf("%s is listed as %v, and here it is %v", name, c, g)
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("%s is not listed, and here it is %v", name, g)
		}
	}
	return ""
}

// checkLedger holds the mirrors and the answers to writes against one another.
func checkLedger(t *testing.T, mirrors []*mirror, written []*change) {
	var whole []*mirror
	for _, m := range mirrors {
		if m.selector == "" {
			whole = append(whole, m)
		}
	}
	ledgers, errs := newLedgers(whole)
	if err := joinFirst(errs); err != nil {
		t.Error(err)
	}
	changes, answers, events := 0, 0, 0
	for _, l := range ledgers {
		n, err := l.acknowledged(written)
		if err != nil {
			t.Error(err)
		}
		changes, answers = changes+len(l.changes), answers+n
		for _, m := range mirrors {
			n, err := l.check(m)
			if err != nil {
				t.Errorf("%s: %v\n%s", m.name, err, m.account())
			}
			events += n
		}
	}
	t.Logf("%d changes in %d ledgers, %d of %d acknowledged writes and %d events held against them", changes, len(ledgers), answers, len(written), events)
	if 2*answers < len(written) {
		t.Error("the mirrors were away for most of the time")
	}
}
