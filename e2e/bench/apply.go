package main

import (
	"fmt"
	"strings"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	deployments = "/apis/apps/v1/namespaces/default/deployments"
	applyEach   = 10 // objects that each client applies, one after the other
)

// measureApply measures server-side apply of objects with one changed field.
func measureApply(e *env) error {
	for _, kind := range []struct {
		name, path string
		body       func(name string, i int) []byte
	}{
		{"apply 1 KB ConfigMaps, 32 clients", configMaps, appliedConfigMap},
		{"apply Deployments, 32 clients", deployments, appliedDeployment},
	} {
		s, stop, err := e.start()
		if err != nil {
			return err
		}
		again := func(c *client, w, i int) error {
			name := fmt.Sprintf("a%d-%d", w, i%applyEach)
			return apply(c, kind.path, name, kind.body(name, i))
		}
		r, err := result{}, eachOnce(s, again)
		if err == nil {
			r, err = drive(s, 32, e.seconds, func(c *client, w, i int) (int64, error) { return 0, again(c, w, i+1) })
		}
		stop()
		if err != nil {
			return err
		}
		e.report(kind.name, "%v", r)
		e.rated(kind.name, r)
	}
	return nil
}

// eachOnce applies all objects for the first time.
func eachOnce(s *harness.Server, fn func(c *client, w, i int) error) error {
	c, err := newClient(s)
	for w := 0; w < 32 && err == nil; w++ {
		for i := 0; i < applyEach && err == nil; i++ {
			err = fn(c, w, i)
		}
	}
	return err
}

// apply is server-side apply by one manager.
func apply(c *client, collection, name string, body []byte) error {
	_, err := c.do("PATCH", collection+"/"+name+"?fieldManager=bench&force=true", "application/apply-patch+yaml", "", body)
	return err
}

// appliedConfigMap returns a ConfigMap; one of its four keys depends on i.
func appliedConfigMap(name string, i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"bench"}},"data":{"mode":"fast","level":"info","payload":%q,"round":"%d"}}`,
		name, strings.Repeat("x", 1000), i)
}

// appliedDeployment returns a typical Deployment; its image depends on i.
func appliedDeployment(name string, i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"labels":{"app":%q,"tier":"backend"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":%q}},
"template":{"metadata":{"labels":{"app":%q}},"spec":{"serviceAccountName":"bench","containers":[{"name":"main","image":"registry.example/app:1.%d","args":["--listen=:8080","--level=info"],
"env":[{"name":"MODE","value":"fast"},{"name":"REGION","value":"north"}],"ports":[{"name":"http","containerPort":8080}],
"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"readinessProbe":{"httpGet":{"path":"/healthz","port":8080}}}]}}}}`, name, name, name, name, i)
}
