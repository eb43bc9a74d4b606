package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// answer is a server's answer to the administrator.
type answer struct {
	code   int
	header http.Header
	body   string
}

// asAdmin sends a request, with a body as JSON.
func asAdmin(t *testing.T, s *harness.Server, method, path, body string) answer {
	t.Helper()
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// TestRuntimeConfig turns APIs off on a server that has objects of them: clients
// cannot tell that they are known, and the server itself goes on with them.
func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	first := harness.StartT(t, harness.Options{})
	if a := asAdmin(t, first, "POST", "/api/v1/namespaces", `{"metadata":{"name":"gone"}}`); a.code != 201 {
		t.Fatal(a)
	}
	const job = `{"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
	for _, ns := range []string{"gone", "default"} {
		if a := asAdmin(t, first, "POST", "/apis/batch/v1/namespaces/"+ns+"/jobs", job); a.code != 201 {
			t.Fatal(a)
		}
	}
	if a := asAdmin(t, first, "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.batch", ""); a.code != 200 {
		t.Fatal(a)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	options := first.Options()
	options.Args = append(options.Args, "--runtime-config=batch/v1=false,autoscaling/v1=false,rbac.authorization.k8s.io/v1=false", "--runtime-config=apps/v1/daemonsets=false,batch/v1beta1",
		"--disabled-metrics=go_goroutines,apiserver_request_total", "--allow-metric-labels=apiserver_request_duration_seconds,verb=GET")
	s := harness.StartT(t, options)
	logged(t, s, "batch/v1beta1 is turned on, and has nothing that this server serves")
	turnedOff(t, s)
	absent(t, s)
	metrics := asAdmin(t, s, "GET", "/metrics", "").body
	for word, want := range map[string]bool{
		"go_goroutines": false, "apiserver_request_total{": false, `apiserver_request_duration_seconds_count{component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="GET"`: true,
		`verb="unexpected"`: true, `apiserver_request_sli_duration_seconds_count{component="apiserver",group="",resource="namespaces",scope="resource",subresource="",verb="POST"`: false,
	} {
		if strings.Contains(metrics, word) != want {
			t.Errorf("metrics have %s: %v", word, !want)
		}
	}
	if a := asAdmin(t, s, "DELETE", "/api/v1/namespaces/gone", ""); a.code != 200 {
		t.Error(a)
	}
	for end := time.Now().Add(patience); asAdmin(t, s, "GET", "/api/v1/namespaces/gone", "").code != 404; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a namespace with an object of an API that is off does not end")
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	again := harness.StartT(t, first.Options())
	if a := asAdmin(t, again, "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.batch", ""); a.code != 200 {
		t.Error(a)
	}
	var jobs struct {
		Items []struct{ Metadata struct{ Namespace string } }
	}
	a := asAdmin(t, again, "GET", "/apis/batch/v1/jobs", "")
	if err := json.Unmarshal([]byte(a.body), &jobs); err != nil || len(jobs.Items) != 1 || jobs.Items[0].Metadata.Namespace != "default" {
		t.Errorf("%v: %v", err, a)
	}
}

// turnedOff requests resources that are not served.
func turnedOff(t *testing.T, s *harness.Server) {
	const (
		noPath     = "404 page not found\n"
		noResource = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}` + "\n"
	)
	for path, want := range map[string]string{
		"/apis/batch":         noPath,
		"/apis/batch/v1":      noPath,
		"/apis/batch/v1/jobs": noPath,
		"/apis/batch/v1/namespaces/default/jobs/j":             noPath,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles":      noPath,
		"/apis/autoscaling/v1":                                 noResource,
		"/apis/autoscaling/v1/horizontalpodautoscalers":        noResource,
		"/apis/apps/v1/daemonsets":                             noResource,
		"/apis/apps/v1/namespaces/default/daemonsets/d/status": noResource,
	} {
		a := asAdmin(t, s, "GET", path, "")
		if a.code != 404 || a.body != want {
			t.Errorf("%s: %d %q, want %q", path, a.code, a.body, want)
		}
		if plain := strings.HasPrefix(a.header.Get("Content-Type"), "text/plain"); plain != (want == noPath) {
			t.Errorf("%s: %s", path, a.header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/apis/autoscaling/v2", "/apis/autoscaling/v2/horizontalpodautoscalers", "/apis/apps/v1/deployments", "/openapi/v3/apis/autoscaling/v2"} {
		if a := asAdmin(t, s, "GET", path, ""); a.code != 200 {
			t.Errorf("%s: %v", path, a)
		}
	}
	if a := asAdmin(t, s, "GET", "/openapi/v3/apis/batch/v1", ""); a.code != 404 {
		t.Errorf("/openapi/v3/apis/batch/v1: %d", a.code)
	}
}

// absent looks for disabled resources in all documents about the API.
func absent(t *testing.T, s *harness.Server) {
	for path, words := range map[string][]string{
		"/":                        {"/apis/batch", "/apis/autoscaling/v1"},
		"/apis":                    {`"batch"`, `"autoscaling/v1"`, `"rbac.authorization.k8s.io"`},
		"/apis/autoscaling":        {`"autoscaling/v1"`},
		"/apis/apps/v1":            {"daemonsets", "DaemonSet"},
		"/openapi/v2":              {"/apis/batch/", "/apis/autoscaling/v1/", "/apis/apps/v1/daemonsets", "/apis/rbac.authorization.k8s.io/"},
		"/openapi/v3":              {"apis/batch", "apis/autoscaling/v1", "apis/rbac"},
		"/openapi/v3/apis/apps/v1": {"/apis/apps/v1/daemonsets"},
		"/apis/apiregistration.k8s.io/v1/apiservices": {`"v1.batch"`, `"v1.autoscaling"`, `"v1.rbac.authorization.k8s.io"`},
	} {
		a := asAdmin(t, s, "GET", path, "")
		if a.code != 200 {
			t.Errorf("%s: %d", path, a.code)
		}
		for _, word := range words {
			if strings.Contains(a.body, word) {
				t.Errorf("%s shows %s", path, word)
			}
		}
	}
}
