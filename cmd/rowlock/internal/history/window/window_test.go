package window_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/window"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

// past returns a server whose ConfigMap a was "old", and is "new", and whose b is gone.
func past(t *testing.T) (*rowlocktest.Server, int64) {
	t.Helper()
	srv := rowlocktest.Start(t, rowlocktest.Past())
	maps := kubernetes.NewForConfigOrDie(srv.Config()).CoreV1().ConfigMaps("default")
	var a *corev1.ConfigMap
	for _, name := range []string{"b", "a"} {
		var err error
		if a, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"is": "old"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := cluster.New(srv.Config(), "default")
	if err != nil {
		t.Fatal(err)
	}
	at, err := revisions.Now(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	a.Data["is"] = "new"
	if _, err := maps.Update(t.Context(), a, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return srv, at
}

// look opens a window for a user, and gives its address and what asks there.
func look(t *testing.T, cfg *rest.Config, at int64) (*window.Window, *rest.Config) {
	t.Helper()
	c, err := cluster.New(cfg, "default")
	if err != nil {
		t.Fatal(err)
	}
	w, err := window.Open(window.Config{Client: c, Revision: at, Moment: "then"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(w.Folder); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", w.Folder, err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", w.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return w, config
}

// ask sends one request through a window.
func ask(t *testing.T, cfg *rest.Config, method, path, accept string) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, cfg.Host+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

const (
	maps  = "/api/v1/namespaces/default/configmaps"
	table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
)

// TestReads: each read is answered as of then, in the form that is asked for.
func TestReads(t *testing.T) {
	t.Parallel()
	srv, at := past(t)
	_, cfg := look(t, srv.Config(), at)
	for _, c := range []struct {
		path, accept string
		code         int
		has          string
	}{
		{maps, "application/json", 200, `"is":"old"`},
		{maps + "?limit=1", "application/json", 200, `"continue":"`},
		{maps + "/a", "application/json", 200, `"is":"old"`},
		{maps + "/b", "application/json", 200, `"kind":"ConfigMap"`},
		{maps + "/b", "application/vnd.kubernetes.protobuf,application/json", 200, `"apiVersion":"v1"`},
		{maps + "/b", table, 200, `"kind":"Table"`},
		{maps + "/b", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", 200, `"kind":"PartialObjectMetadata"`},
		{maps + "/never", table, 404, `configmaps \"never\" not found, then`},
		{"/api/v1/namespaces/default", "application/json", 200, `"kind":"Namespace"`},
		{"/api/v1/namespaces/default/status", "application/json", 200, `"kind":"Namespace"`},
		{"/apis", "application/json", 200, `"APIGroupList"`},
		{"/version", "application/json", 200, `"gitVersion"`},
		{revisions.Root + "/namespaces/default/revisions/" + fmt.Sprintf("configmaps:a:%d/diff", at), "application/json", 200, `"kind":"Difference"`},
		{"/api/v1/nonsense/x", "application/json", 404, `"Status"`},
	} {
		if code, body := ask(t, cfg, http.MethodGet, c.path, c.accept); code != c.code || !strings.Contains(body, c.has) || strings.Contains(body, `"is":"new"`) {
			t.Errorf("%s as %s: %d %s; want %d with %s", c.path, c.accept, code, body, c.code, c.has)
		}
	}
	client := kubernetes.NewForConfigOrDie(cfg)
	all, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(all.Items) != 1 || all.Continue == "" {
		t.Fatalf("%v, %v", all, err)
	}
	all, err = client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{Limit: 100, Continue: all.Continue})
	if err != nil || len(all.Items) == 0 || all.Items[len(all.Items)-1].Name != "b" && all.Items[0].Name != "b" {
		t.Errorf("the second page: %v, %v", all, err)
	}
}

// TestRefuses: nothing is written, streamed or watched, and metrics have no past.
func TestRefuses(t *testing.T) {
	t.Parallel()
	srv, at := past(t)
	_, cfg := look(t, srv.Config(), at)
	for _, c := range []struct{ method, path string }{
		{http.MethodPost, maps}, {http.MethodPut, maps + "/a"}, {http.MethodPatch, maps + "/a"}, {http.MethodDelete, maps + "/a"}, {http.MethodDelete, maps},
		{http.MethodGet, maps + "?watch=true"}, {http.MethodGet, "/api/v1/watch/namespaces/default/configmaps"},
		{http.MethodGet, "/api/v1/namespaces/default/pods/p/log"}, {http.MethodGet, "/api/v1/namespaces/default/pods/p/exec"},
		{http.MethodGet, "/api/v1/namespaces/default/services/s/proxy/x"}, {http.MethodGet, "/api/v1/componentstatuses"}, {http.MethodGet, "/api/v1/componentstatuses/etcd-0"}, {http.MethodGet, "/metrics"}, {http.MethodPost, "/apis"}, {http.MethodConnect, "/api/v1/nodes/n/proxy"},
	} {
		if code, body := ask(t, cfg, c.method, c.path, "application/json"); code != http.StatusMethodNotAllowed || !strings.Contains(body, "read-only view of the past, then") {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, body)
		}
	}
	a, err := kubernetes.NewForConfigOrDie(srv.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || a.Data["is"] != "new" {
		t.Errorf("something was written: %v, %v", a, err)
	}
}

// TestWhatOthersKeep: an answer of an aggregated server is about the present, whichever version
// was requested and whatever it contains: it is not shown as the past.
func TestWhatOthersKeep(t *testing.T) {
	t.Parallel()
	const then = 7
	for name, c := range map[string]struct{ via, version string }{
		"another server":                {aggregator.Via, "7"},
		"another server, and proxies":   {"1.0 a, " + aggregator.Via + ", 1.1 b", "7"},
		"without versions":              {"", ""},
		"of now":                        {"", "9"},
		"kept here":                     {"", "7"},
		"kept here, and behind a proxy": {"1.1 proxy", "7"},
	} {
		behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Via", c.via)
			fmt.Fprintf(w, `{"kind":"PodMetricsList","metadata":{"resourceVersion":%q},"items":[{"metadata":{"name":"p"},"load":"present"}]}`, c.version)
		}))
		t.Cleanup(behind.Close)
		_, cfg := look(t, &rest.Config{Host: behind.URL}, then)
		for _, path := range []string{"/apis/metrics.k8s.io/v1beta1/namespaces/default/pods", "/apis/metrics.k8s.io/v1beta1/pods", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/p"} {
			code, body := ask(t, cfg, http.MethodGet, path, "application/json")
			if here := strings.HasPrefix(name, "kept here"); (code == http.StatusOK) != here || strings.Contains(body, "present") != here || !here && !strings.Contains(body, "not stored by this server") {
				t.Errorf("%s: %s: %d %s", name, path, code, body)
			}
		}
	}
}

// TestOthersAreKeptOut: without the token nothing is answered, and the file is the user's.
func TestOthersAreKeptOut(t *testing.T) {
	t.Parallel()
	srv, at := past(t)
	w, cfg := look(t, srv.Config(), at)
	for _, token := range []string{"", "guess", cfg.BearerToken + "x", cfg.BearerToken[:len(cfg.BearerToken)-1]} {
		stranger := rest.AnonymousClientConfig(cfg)
		stranger.BearerToken = token
		if code, body := ask(t, stranger, http.MethodGet, maps, "application/json"); code != http.StatusUnauthorized || strings.Contains(body, "old") {
			t.Errorf("token %q: %d %s", token, code, body)
		}
	}
	for path, mode := range map[string]os.FileMode{w.Kubeconfig: 0o600, w.Folder: 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(cfg.Host, "https://"), &tls.Config{})
	if err == nil {
		conn.Close()
		t.Error("all clients trust the certificate")
	}
}

// TestRights: the past is read with the user's rights. Who may get an object and not list
// it sees it through its history; who may not get it does not.
func TestRights(t *testing.T) {
	t.Parallel()
	srv, at := past(t)
	srv.Allow("ann", "default",
		rowlocktest.Rule("", []string{"configmaps"}, "get"), rowlocktest.Rule(revisions.Group, []string{"revisions"}, "get"))
	srv.Allow("bob", "default", rowlocktest.Rule(revisions.Group, []string{"revisions"}, "get"))
	for user, want := range map[string]int{"ann": http.StatusOK, "bob": http.StatusForbidden, "eve": http.StatusForbidden} {
		_, cfg := look(t, srv.As(user), at)
		code, body := ask(t, cfg, http.MethodGet, maps+"/b", "application/json")
		if code != want || (code == http.StatusOK) != strings.Contains(body, `"is":"old"`) {
			t.Errorf("%s: %d %s; want %d", user, code, body, want)
		}
		if code, body := ask(t, cfg, http.MethodGet, maps, "application/json"); code != http.StatusForbidden {
			t.Errorf("%s lists: %d %s", user, code, body)
		}
	}
}

// TestEnvironment: variables that name other clusters do not reach the child.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	srv, at := past(t)
	w, _ := look(t, srv.Config(), at)
	got := strings.Join(w.Environment([]string{"KUBECONFIG=/mine", "KEEP=1", "HTTPS_PROXY=http://x"}, "then"), " ")
	if want := fmt.Sprintf("KEEP=1 KUBECONFIG=%s KUBECACHEDIR=%s/cache ROWLOCK_AT=then", w.Kubeconfig, w.Folder); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
