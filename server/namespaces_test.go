package server_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

type nobody struct{}

func (nobody) Authenticate(*http.Request) (*authx.Authenticated, bool, error) { return nil, false, nil }

// start runs a server on a store in memory whose namespaces are emptied quickly.
func start(t *testing.T) *server.Server { return startWith(t, nobody{}) }

func startWith(t testing.TB, a authx.Authenticator) *server.Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	s, err := server.New(server.Config{
		Store:         sqlstore.New(storetest.NewMemory(), sqlstore.Config{}),
		Catalogue:     kinds.NewCatalogue(builtin.Resources()),
		Authenticator: a, Authorizer: authx.Masters{},
		TLS:      &tls.Config{Certificates: borrowed.TLS.Certificates},
		Listener: listener,
		Leading: map[string]func(*server.Server) server.Loop{
			"namespaces": func(s *server.Server) server.Loop {
				return (&controllers.Namespaces{
					API: s, Cache: s.Cache, Catalogue: s.Config().Catalogue, Log: slog.New(slog.DiscardHandler),
					Grace: time.Nanosecond, Interval: 5 * time.Millisecond,
				}).Run
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	eventually(t, s.Ready)
	return s
}

func eventually(t testing.TB, what func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !what() {
		select {
		case <-deadline.C:
			t.Fatal("it did not come true")
		case <-tick.C:
		}
	}
}

func TestNamespaceIsEmptied(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	call := func(method, path string, body, into any) error {
		contentType := "application/json"
		if method == "PATCH" {
			contentType = "application/merge-patch+json"
		}
		return s.Call(ctx, "test", method, path, contentType, body, into)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(call("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "goner"}}, nil))
	for _, name := range []string{"a", "b"} {
		must(call("POST", "/api/v1/namespaces/goner/configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil))
	}
	must(call("POST", "/api/v1/namespaces/goner/secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"x.example/hold"}},
	}, nil))
	must(call("DELETE", "/api/v1/namespaces/goner", nil, nil))

	var ns corev1.Namespace
	eventually(t, func() bool {
		must(call("GET", "/api/v1/namespaces/goner", nil, &ns))
		return len(ns.Status.Conditions) > 0
	})
	for _, c := range ns.Status.Conditions {
		if c.Type == corev1.NamespaceFinalizersRemaining && (c.Status != corev1.ConditionTrue ||
			c.Message != "Some content in the namespace has finalizers remaining: x.example/hold in 1 resource instances") {
			t.Errorf("%+v", c)
		}
	}
	if s.Cache.Get("configmaps", "goner", "a") != nil || s.Cache.Get("secrets", "goner", "held") == nil {
		t.Error("what had no finalizer should be gone, and what had one be there")
	}
	must(call("PATCH", "/api/v1/namespaces/goner/secrets/held", map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil))
	eventually(t, func() bool {
		return apierrors.IsNotFound(call("GET", "/api/v1/namespaces/goner", nil, nil))
	})
}
