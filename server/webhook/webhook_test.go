package webhook_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/rowlock/rowlock/server/webhook"
)

func TestResolver(t *testing.T) {
	ports := []corev1.ServicePort{{Name: "https", Port: 443}, {Name: "other", Port: 8443}}
	service := func(kind corev1.ServiceType, ip string) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, ClusterIP: ip, Ports: ports, ExternalName: "elsewhere.example.org"}}
		s.Name, s.Namespace = "s", "ns"
		return s
	}
	https, number, ready, not := "https", int32(9443), true, false
	slice := &discoveryv1.EndpointSlice{
		Ports: []discoveryv1.EndpointPort{{Name: &https, Port: &number}, {Name: new(string)}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &not}},
			{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
		},
	}
	endpoints := &corev1.Endpoints{Subsets: []corev1.EndpointSubset{
		{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.3"}}, Ports: []corev1.EndpointPort{{Name: "other", Port: 1}}},
		{NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.0.0.4"}}, Ports: []corev1.EndpointPort{{Name: "https", Port: 2}}},
	}}
	for name, c := range map[string]struct {
		service   *corev1.Service
		endpoints *corev1.Endpoints
		slices    []*discoveryv1.EndpointSlice
		direct    bool
		port      int32
		want      string
	}{
		"its address":             {service: service(corev1.ServiceTypeClusterIP, "10.96.0.7"), want: "10.96.0.7:443"},
		"another port":            {service: service(corev1.ServiceTypeNodePort, "fd00::7"), port: 8443, want: "[fd00::7]:8443"},
		"a name outside":          {service: service(corev1.ServiceTypeExternalName, ""), port: 7, want: "elsewhere.example.org:7"},
		"no address":              {service: service(corev1.ServiceTypeClusterIP, corev1.ClusterIPNone), want: `cannot route to service with ClusterIP "None"`},
		"no such port":            {service: service(corev1.ServiceTypeClusterIP, "10.96.0.7"), port: 1, want: `no service port 1 found for service "s"`},
		"no service":              {want: `service "s" not found`},
		"no endpoints":            {service: service(corev1.ServiceTypeClusterIP, "None"), direct: true, want: `no endpoints available for service "s"`},
		"a slice":                 {service: service(corev1.ServiceTypeClusterIP, "None"), direct: true, slices: []*discoveryv1.EndpointSlice{slice}, want: "10.0.0.2:9443"},
		"endpoints":               {service: service(corev1.ServiceTypeClusterIP, "None"), direct: true, endpoints: endpoints, port: 8443, want: "10.0.0.3:1"},
		"endpoints not ready":     {service: service(corev1.ServiceTypeClusterIP, "None"), direct: true, endpoints: endpoints, want: `no endpoints available for service "s"`},
		"a name without endpoint": {service: service(corev1.ServiceTypeExternalName, ""), direct: true, want: `unsupported service type "ExternalName"`},
	} {
		r := &webhook.Resolver{
			Direct:    c.direct,
			Service:   func(context.Context, string, string) (*corev1.Service, error) { return c.service, nil },
			Endpoints: func(context.Context, string, string) (*corev1.Endpoints, error) { return c.endpoints, nil },
			Slices:    func(context.Context, string, string) ([]*discoveryv1.EndpointSlice, error) { return c.slices, nil },
		}
		got, err := r.Resolve(t.Context(), webhook.Service{Namespace: "ns", Name: "s", Port: c.port})
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestClient posts often, through one connection, with the credentials in the address.
func TestClient(t *testing.T) {
	var connections, moved atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/who":
			fmt.Fprint(w, r.Header.Get("Authorization"), " ", r.UserAgent())
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/elsewhere":
			moved.Add(1)
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "secret")
		}
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.StartTLS()
	defer srv.Close()
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","users":[{"name":"`+strings.TrimPrefix(srv.URL, "https://")+`","user":{"token":"t"}},{"name":"*","user":{"token":"wrong"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials, err := webhook.LoadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &webhook.Client{Credentials: credentials, Agent: "tester"}
	defer c.Close()
	// Package net/http gives up a connection whose answer arrives 50 ms before the goroutine that wrote
	// the request reports the end of the write. Only if that has happened, on a busy machine, another one is allowed.
	posts, given := 0, 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(err error) {
		if err == nil {
			given++ // back for the next, before the end of the answer is read
		}
	}})
	for ; posts-given < 10 && given < 20; posts++ {
		got, err := c.Post(ctx, webhook.Target{URL: srv.URL + "/who", CABundle: bundle}, []byte("{}"))
		if err != nil || string(got) != "Bearer t tester" {
			t.Fatalf("%s %v", got, err)
		}
	}
	if n := int(connections.Load()); given < 20 || n > 1+posts-given {
		t.Errorf("%d connections for %d requests, after %d of which there was one for the next", n, posts, given)
	}
	for path, want := range map[string]string{
		"/moved": "307", "/picture": "unknown", "/empty": "0-length response with status code: 200",
	} {
		_, err := c.Post(t.Context(), webhook.Target{URL: srv.URL + path, CABundle: bundle}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if moved.Load() > 0 {
		t.Error("a redirect was followed")
	}
	for _, target := range []webhook.Target{{}, {URL: "http://127.0.0.1"}, {URL: "https://127.0.0.1", CABundle: "none"}} {
		_, err := c.Post(t.Context(), target, nil)
		if config := (*webhook.ConfigError)(nil); !errors.As(err, &config) {
			t.Errorf("%+v: %v", target, err)
		}
	}
}
