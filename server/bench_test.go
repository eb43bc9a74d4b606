package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// sink takes an answer.
type sink struct {
	header http.Header
	code   int
	n      int
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(c int)   { s.code = c }
func (s *sink) Write(b []byte) (int, error) {
	s.n += len(b)
	return len(b), nil
}

const benchPods = "/api/v1/namespaces/default/pods"

func benchPod(i int) string {
	var env strings.Builder
	for k := range 16 {
		if k > 0 {
			env.WriteByte(',')
		}
		fmt.Fprintf(&env, `{"name":"SETTING_%02d","value":"%s"}`, k, strings.Repeat("v", 48))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","labels":{"app":"a%d"}},"spec":{"nodeName":"n%d","automountServiceAccountToken":false,
"containers":[{"name":"main","image":"registry.example/app:1.4","env":[%s],"resources":{"requests":{"cpu":"100m"}}}]}}`, i, i%50, i%100, env.String())
}

// BenchmarkRequests takes requests through the whole chain, over a store in memory;
// only net/http and TLS are missing.
func BenchmarkRequests(b *testing.B) {
	s := servertest.Start(b, func(c *server.Config) { c.Authenticator = servertest.Everybody{User: servertest.Admin} })
	h := s.Handler()
	do := func(method, path, contentType, body string) *sink {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		w := &sink{header: http.Header{}}
		h.ServeHTTP(w, r)
		if w.code >= 300 {
			b.Fatalf("%s %s: %d", method, path, w.code)
		}
		return w
	}
	for i := range 1000 {
		do("POST", benchPods, "application/json", benchPod(i))
	}
	for _, bc := range []struct{ name, path string }{
		{"get", benchPods + "/p7"},
		{"node", benchPods + "?fieldSelector=spec.nodeName%3Dn7"},
		{"label", benchPods + "?labelSelector=app%3Da7"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", bc.path, nil)
			w := &sink{header: http.Header{}}
			h.ServeHTTP(w, r)
			b.SetBytes(int64(w.n))
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
	b.Run("create", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			do("POST", benchPods, "application/json", benchPod(1000+i+int(b.Elapsed())))
		}
	})
	b.Run("status", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			do("PATCH", benchPods+"/p1/status", "application/strategic-merge-patch+json", fmt.Sprintf(
				`{"status":{"conditions":[{"type":"Ready","status":"%s","lastTransitionTime":"2026-01-01T00:00:%02dZ"}],"phase":"Running","hostIP":"10.0.0.1"}}`, []string{"True", "False"}[i%2], i%60))
		}
	})
	const (
		leases  = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
		renewed = `{"spec":{"renewTime":"2026-01-01T00:00:%02d.%06dZ"}}`
		applied = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app":"bench"}},"data":{"mode":"fast","level":"info","payload":"%s","round":"%d"}}`
		again   = "?fieldManager=bench&force=true"
	)
	do("POST", leases, "application/json", `{"metadata":{"name":"n"},"spec":{"holderIdentity":"n","leaseDurationSeconds":40}}`)
	payload := strings.Repeat("x", 1000)
	for _, bc := range []struct {
		name, method, path, contentType string
		body                            func(i int) string
	}{
		{"renew", "PATCH", leases + "/n", "application/merge-patch+json", func(i int) string { return fmt.Sprintf(renewed, i/1000%60, i%1000) }},
		{"apply", "PATCH", "/api/v1/namespaces/default/configmaps/a" + again, "application/apply-patch+yaml", func(i int) string { return fmt.Sprintf(applied, payload, i) }},
		{"applyDeployment", "PATCH", "/apis/apps/v1/namespaces/default/deployments/a" + again, "application/apply-patch+yaml", benchDeployment},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				do(bc.method, bc.path, bc.contentType, bc.body(i))
			}
		})
	}
}

// benchDeployment returns a Deployment as operators apply it, with another image from i to i.
func benchDeployment(i int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"app":"a","tier":"backend"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}},
"template":{"metadata":{"labels":{"app":"a"}},"spec":{"serviceAccountName":"bench","containers":[{"name":"main","image":"registry.example/app:1.%d","args":["--listen=:8080","--level=info"],
"env":[{"name":"MODE","value":"fast"},{"name":"REGION","value":"north"}],"ports":[{"name":"http","containerPort":8080}],
"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"readinessProbe":{"httpGet":{"path":"/healthz","port":8080}}}]}}}}`, i)
}
