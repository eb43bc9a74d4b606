package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/rowlock/rowlock/e2e/harness"
)

// protocol is shared by the cases of TestProtocol: one server, clients of it, and for each case a
// namespace of its own.
type protocol struct {
	s    *harness.Server
	raw  *api
	core *corev1client.CoreV1Client
	dyn  dynamic.Interface
}

// TestProtocol holds the server to what Kubernetes' own end-to-end tests expect of
// the protocol, on one server for each database.
func TestProtocol(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	stores := map[string]func() string{
		"SQLite":     func() string { return "" },
		"PostgreSQL": func() string { return newDatabase(t, pg) },
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The cases here count, or do themselves, the work of these controllers after some seconds.
			p := startProtocol(t, store(), noRootCA+",-garbagecollector")
			// Here history is short, so that tokens expire soon.
			forgetful := startProtocol(t, store(), "--history-retention=2s", noRootCA)
			var wg sync.WaitGroup
			wg.Go(func() {
				t.Run("chunks of lost history", func(t *testing.T) { lostChunks(t, forgetful, forgetful.namespace(t, "lost")) })
			})
			for name, fn := range map[string]func(*testing.T, *protocol, string){
				"chunks":                       chunks,
				"list options":                 listOptions,
				"watches with selectors":       selectorWatches,
				"watches from versions":        versionWatches,
				"watches see one order":        oneOrder,
				"watch-list":                   watchList,
				"tables":                       tables,
				"field validation":             fieldValidation,
				"request timeouts":             requestTimeouts,
				"namespaces":                   namespaces,
				"namespaces go with contents":  namespaceContents,
				"discovery":                    discoveryDocuments,
				"health":                       healthChecks,
				"delete collections":           deleteCollections,
				"dependents and preconditions": deleteOptions,
				"writes that change nothing":   noOps,
				"concurrent writers":           concurrentWriters,
				"applies":                      applies,
				"large objects":                largeObjects,
			} {
				// All at once: they wait more than they work.
				wg.Go(func() { t.Run(name, func(t *testing.T) { fn(t, p, p.namespace(t, name)) }) })
			}
			wg.Wait()
		})
	}
}

func startProtocol(t *testing.T, store string, args ...string) *protocol {
	t.Helper()
	s := harness.StartT(t, harness.Options{Store: store, Args: args})
	core, err := corev1client.NewForConfig(restConfig(t, s, "application/vnd.kubernetes.protobuf"))
	if err != nil {
		t.Fatal(err)
	}
	return &protocol{s: s, raw: newAPI(t, s), core: core, dyn: dynamicClient(t, s)}
}

// namespace makes the namespace of a case.
func (p *protocol) namespace(t *testing.T, name string) string {
	t.Helper()
	name = "e2e-" + strings.ReplaceAll(name, " ", "-")
	if _, err := p.core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Pods are refused until there is an account for them.
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, err := p.core.ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		if err == nil {
			return name
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func (p *protocol) configMap(t *testing.T, ns, name string, labels map[string]string) *corev1.ConfigMap {
	t.Helper()
	cm, err := p.core.ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

// change sets a label and the data of a ConfigMap.
func (p *protocol) change(t *testing.T, ns, name, label, data string) *corev1.ConfigMap {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"watch":%q}},"data":{"v":%q}}`, label, data)
	cm, err := p.core.ConfigMaps(ns).Patch(t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func (p *protocol) delete(t *testing.T, ns, name string) {
	t.Helper()
	if err := p.core.ConfigMaps(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// get asks with an Accept header and returns status, header and body.
func (p *protocol) get(t *testing.T, path, accept string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	req.Header.Set("Accept", accept)
	resp, err := p.raw.c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header, readAll(t, resp)
}

// events takes n events from a watch and prints them: "ADDED name=v".
func events(t *testing.T, w watch.Interface, n int) (out []string) {
	t.Helper()
	limit := time.After(patience)
	for len(out) < n {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended after %q", out)
			}
			out = append(out, eventText(e))
		case <-limit:
			t.Fatalf("%d events are missing after %q", n-len(out), out)
		}
	}
	return out
}

func eventText(e watch.Event) string {
	switch o := e.Object.(type) {
	case *corev1.ConfigMap:
		return fmt.Sprintf("%s %s=%s", e.Type, o.Name, o.Data["v"])
	case *metav1.Status:
		return fmt.Sprintf("%s %d", e.Type, o.Code)
	}
	return fmt.Sprintf("%s %T", e.Type, e.Object)
}

func (p *protocol) watch(ctx context.Context, t *testing.T, ns string, o metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := p.core.ConfigMaps(ns).Watch(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}
