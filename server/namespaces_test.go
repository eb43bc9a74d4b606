package server_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// quickly is an option: namespaces are emptied without the usual pauses.
func quickly(c *server.Config) {
	c.Controllers.NamespaceGrace, c.Controllers.NamespaceInterval = time.Nanosecond, 5*time.Millisecond
}

func TestNamespaceIsEmptied(t *testing.T) {
	s := servertest.Start(t, quickly)
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
	servertest.Eventually(t, func() bool {
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
	servertest.Eventually(t, func() bool {
		return apierrors.IsNotFound(call("GET", "/api/v1/namespaces/goner", nil, nil))
	})
}
