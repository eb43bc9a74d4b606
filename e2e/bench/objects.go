package main

import (
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	pods       = "/api/v1/namespaces/default/pods"
	leases     = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
)

// configMap is a ConfigMap of about size bytes.
func configMap(name string, size int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"payload":%q}}`, name, strings.Repeat("x", size))
}

// pod is a Pod of about 4.9 KB as JSON, most of it in its environment.
func pod(name, node, app string) []byte {
	var env strings.Builder
	for i := range 16 {
		if i > 0 {
			env.WriteByte(',')
		}
		fmt.Fprintf(&env, `{"name":"SETTING_%02d","value":"%s"}`, i, strings.Repeat("v", 48))
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":%q,"tier":"backend"},"annotations":{"note":%q}},
"spec":{"nodeName":%q,"automountServiceAccountToken":false,"containers":[{"name":"main","image":"registry.example/app:1.4","env":[%s],"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},
"readinessProbe":{"httpGet":{"path":"/healthz","port":8080}},"ports":[{"name":"http","containerPort":8080}]}]}}`, name, app, strings.Repeat("n", 190), node, env.String())
}

// fill writes n objects from several clients.
func fill(s *harness.Server, n int, path string, body func(i int) []byte) error {
	const workers = 16
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			c, err := newClient(s)
			for i := w; i < n && err == nil; i += workers {
				_, err = c.do("POST", path, "application/json", "", body(i))
			}
			errs <- err
		}()
	}
	var first error
	for range workers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// account makes sure that pods can be created in the default namespace.
func account(s *harness.Server) {
	c, err := newClient(s)
	if err == nil {
		_, _ = c.do("POST", "/api/v1/namespaces/default/serviceaccounts", "application/json", "", []byte(`{"metadata":{"name":"default"}}`)) // it may exist
	}
}
