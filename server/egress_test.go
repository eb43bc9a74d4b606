package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
)

// ways records which server was to be reached by which proxy, and connects to none.
type ways struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (w *ways) to(network string) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen[network+" "+address] = true
		return nil, errors.New("the way to " + network + " is closed")
	}
}

func (w *ways) took(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[what]
}

// Node agents, webhooks and aggregated servers are reached by the way of their network.
func TestConnectionsLeaveByTheirWay(t *testing.T) {
	w := &ways{seen: map[string]bool{}}
	s := servertest.Start(t, func(c *server.Config) {
		c.Kubelet = &podverbs.Kubelet{}
		c.Egress = server.Egress{Cluster: w.to("cluster"), ControlPlane: w.to("controlplane")}
	})
	service := string(s.Must("POST", "/api/v1/namespaces/default/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"behind"},"spec":{"ports":[{"port":443}]}}`))
	_, rest, _ := strings.Cut(service, `"clusterIP":"`)
	ip, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatal(service)
	}
	hook := func(name, config string) {
		s.Must("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",
			"metadata":{"name":%q},"webhooks":[{"name":"%s.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore","clientConfig":%s,
			"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}]}`, name, name, config))
	}
	hook("service", `{"service":{"namespace":"default","name":"behind"}}`)
	hook("url", `{"url":"https://hook.example.com:8443/"}`)
	n := 0
	servertest.Eventually(t, func() bool {
		n++
		s.Must("POST", "/api/v1/namespaces/default/configmaps", fmt.Sprintf(configMap, fmt.Sprint("b", n)))
		return w.took("cluster "+ip+":443") && w.took("controlplane hook.example.com:8443")
	})
	s.Must("POST", "/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`)
	s.Must("PATCH", "/api/v1/nodes/n/status", `{"status":{"addresses":[{"type":"InternalIP","address":"10.9.9.9"}]}}`, "Content-Type", "application/merge-patch+json")
	s.Must("POST", "/api/v1/namespaces/default/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`)
	if answer := s.Do("GET", "/api/v1/namespaces/default/pods/p/log", ""); !w.took("cluster 10.9.9.9:10250") {
		t.Errorf("the node's agent was not asked by the way of the cluster: %s", answer.Body)
	}
	s.Must("POST", "/api/v1/namespaces/default/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"other"},"spec":{"ports":[{"port":8444}]}}`)
	s.Must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.example.com"},
		"spec":{"group":"example.com","version":"v1","groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"other","port":8444}}}`)
	servertest.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for address := range w.seen {
			if strings.HasPrefix(address, "cluster ") && strings.HasSuffix(address, ":8444") {
				return true
			}
		}
		return false
	})
}
