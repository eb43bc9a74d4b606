package server

import (
	"net/http"
	"testing"
)

// TestIsShort: what may go on for long is left to package http2.
func TestIsShort(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{http.MethodPost, "/api/v1/namespaces/a/configmaps?fieldManager=x", true},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", true},
		{http.MethodPatch, "/api/v1/nodes/n/status", true},
		{http.MethodDelete, "/api/v1/namespaces/a/pods", true},
		{http.MethodGet, "/api/v1/namespaces/a/pods/p", true},
		{http.MethodGet, "/apis/apps/v1/namespaces/a/deployments/d", true},
		{http.MethodGet, "/api/v1/namespaces/a/pods/p?watch=1", false},
		{http.MethodGet, "/api/v1/namespaces/a/pods/p%3fwatch=1", false},
		{http.MethodGet, "/api/v1/namespaces/a/pods/p/log", false},
		{http.MethodGet, "/api/v1/namespaces/a/pods", false},
		{http.MethodGet, "/api/v1/watch/namespaces/a/pods/p", false},
		{http.MethodGet, "/apis/apps/v1/watch/namespaces/a/deployments", false},
		{http.MethodGet, "/api/v1/nodes/n", false},
		{http.MethodGet, "/api", false},
		{http.MethodGet, "/apis", false},
		{http.MethodPost, "/apis", false},
		{http.MethodPost, "/apis/apps", false},
		{http.MethodPost, "/debug/pprof/profile", false},
		{http.MethodPost, "/api/v1/namespaces/a/services/s/proxy/stream", false},
		{http.MethodPut, "/api/v1/nodes/n/proxy/x", false},
		{http.MethodPost, "/api/v1/namespaces/a/pods/p/exec?command=x", false},
		{http.MethodPost, "/api/v1/namespaces/a/pods/p/%61ttach", false},
		{http.MethodPost, "/api/v1/namespaces/a/pods/p/portforward", false},
		{http.MethodPost, "/api/v1/namespaces/a/pods/p/eviction", true},
		{http.MethodHead, "/api/v1/namespaces/a/pods/p", false},
		{http.MethodConnect, "/api/v1/namespaces/a/pods/p", false},
	} {
		if got := isShort(c.method, c.path); got != c.want {
			t.Errorf("%s %s: %v", c.method, c.path, got)
		}
	}
}
