package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	pods       = "/api/v1/namespaces/default/pods"
	leases     = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
)

// configMap returns a ConfigMap of about size bytes.
func configMap(name string, size int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"payload":%q}}`, name, strings.Repeat("x", size))
}

// pod returns a Pod of about 4.9 KB of JSON, most of it environment variables.
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

// fill creates n objects from several clients.
func fill(s *harness.Server, n int, path string, body func(i int) []byte) error {
	t, err := own(s)
	if err != nil {
		return err
	}
	return t.fill(n, path, body)
}

func (t *target) fill(n int, path string, body func(i int) []byte) error {
	const workers = 16
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			c := t.client(overHTTP2)
			var err error
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

// account creates the ServiceAccount that Pods of the default namespace need.
func account(s *harness.Server) {
	c, err := newClient(s)
	if err == nil {
		_, _ = c.do("POST", "/api/v1/namespaces/default/serviceaccounts", "application/json", "", []byte(`{"metadata":{"name":"default"}}`)) // it may exist
	}
}

// lease returns a Lease as a kubelet creates it.
func lease(name string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"holderIdentity":%q,"leaseDurationSeconds":40}}`, name, name)
}

// renew renews a Lease.
func renew(c *client, path string) error {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	_, err := c.do("PATCH", path, "application/merge-patch+json", "", fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now))
	return err
}

// hostIP is a status field that a kubelet sets once.
const hostIP = `,"hostIP":"10.0.0.1"`

// patchStatus patches the status of a Pod; the values depend on i. more holds further fields of the status, each
// after a comma.
func patchStatus(c *client, path, more string, i int) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"%s","lastTransitionTime":"2026-01-01T00:%02d:%02dZ"}],"phase":"Running"%s}}`, []string{"True", "False"}[i%2], i/60%60, i%60, more)
	_, err := c.do("PATCH", path, "application/strategic-merge-patch+json", "", patch)
	return err
}
