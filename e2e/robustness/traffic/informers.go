//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// turns sends each request to the next server.
type turns struct {
	c    *cluster.Cluster
	next atomic.Int64
	base http.RoundTripper
}

func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	i := int(t.next.Add(1)) % t.c.Len()
	r = r.Clone(r.Context())
	r.URL.Host = t.c.URL(i)[len("https://"):]
	return t.base.RoundTrip(r)
}

// startInformers runs an informer of client-go for each scope of ConfigMaps and custom resources, as controllers do.
func (t *Traffic) startInformers() {
	for n, scope := range []history.Scope{{Resource: configMaps.resource, Namespace: Namespaces[0]}, {Resource: widgets.resource, Namespace: Namespaces[1]}, {Resource: deployments.resource, Namespace: Namespaces[0]}} {
		t.readers.Go(func() { t.inform(fmt.Sprintf("informer-%d", n), scope) })
	}
}

func (t *Traffic) inform(name string, scope history.Scope) {
	k := kindOf(scope.Resource)
	transport := t.c.Client(cluster.HTTP2, false).Transport
	config := &rest.Config{Host: t.c.URL(0), BearerToken: harness.AdminToken, Transport: &turns{c: t.c, base: transport}, QPS: 100, Burst: 100, Timeout: 15 * time.Second}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.rec.Stuck(name + ": " + err.Error())
		return
	}
	version, err := schema.ParseGroupVersion(k.apiVersion)
	if err != nil {
		t.rec.Stuck(name + ": " + err.Error())
		return
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(d, version.WithResource(k.plural), scope.Namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		if o.Watch || o.TimeoutSeconds != nil { // shorter than client-go's minutes, so that it meets every server
			seconds := int64(6)
			o.TimeoutSeconds = &seconds
		}
	}).Informer()
	kept := &history.Cache{Client: name, Scope: scope}
	var mu sync.Mutex
	versions := map[string]uint64{}
	note := func(what string, obj any) {
		mu.Lock()
		defer mu.Unlock()
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return // a deletion that the informer found by a list
		}
		v, _ := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
		if old := versions[u.GetName()]; v < old && kept.Wrong == "" {
			kept.Wrong = fmt.Sprintf("%s %s at version %d after %d", what, u.GetName(), v, old)
		}
		versions[u.GetName()] = v
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { note("add", obj) }, UpdateFunc: func(_, obj any) { note("update", obj) }, DeleteFunc: func(obj any) { note("delete", obj) },
	})
	if err != nil {
		t.rec.Stuck(name + ": " + err.Error())
		return
	}
	_ = informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}) // refusals are what faults are for
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.Run(stop)
	}()
	reached := func() bool {
		v, _ := strconv.ParseUint(informer.LastSyncResourceVersion(), 10, 64)
		return t.over(v)
	}
	for !reached() {
		sleep(t.ctx, 100*time.Millisecond)
	}
	// The informer knows the version before its store has what it received.
	unchanged(t.ctx, func() (all uint64) {
		for _, obj := range informer.GetStore().List() {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				v, _ := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
				all += v
			}
		}
		return all
	})
	close(stop)
	<-done
	if at := informer.LastSyncResourceVersion(); t.ctx.Err() != nil && !reaches(at, t.final.Load()) {
		t.rec.Stuck(fmt.Sprintf("%s of %s/%s is at version %s when all is quiet at %d", name, scope.Resource, scope.Namespace, at, t.final.Load()))
		return
	}
	mu.Lock()
	defer mu.Unlock()
	for _, obj := range informer.GetStore().List() {
		u := obj.(*unstructured.Unstructured).DeepCopy()
		item, err := history.FromTree(u.Object, 0)
		if err != nil {
			kept.Wrong = err.Error()
			continue
		}
		kept.Items = append(kept.Items, item)
	}
	t.rec.Add(kept)
}

// sameLooks is after how many equal looks at something it has settled.
const sameLooks = 20

// unchanged waits until something has settled. It counts looks, not time: in a program that stands still, nothing else goes on either.
func unchanged(ctx context.Context, look func() uint64) {
	for before, same := look(), 0; same < sameLooks && ctx.Err() == nil; {
		sleep(ctx, 50*time.Millisecond)
		if now := look(); now != before {
			before, same = now, 0
		} else {
			same++
		}
	}
}

// reaches reports whether a version is not before another one.
func reaches(at string, final uint64) bool {
	v, err := strconv.ParseUint(at, 10, 64)
	return err == nil && v >= final
}
