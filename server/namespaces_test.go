package server_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/servertest"
)

// quickly is an option: namespaces are emptied without the usual pauses.
func quickly(c *server.Config) {
	c.Controllers.Named, c.Controllers.NamespaceInterval = func(name string) bool { return name == "namespace" }, 5*time.Millisecond
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
	for i := range 40 {
		must(call("POST", "/api/v1/namespaces/goner/endpoints", &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "e-" + strconv.Itoa(i)}}, nil))
	}
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
	if s.Cache.Get("configmaps", "goner", "a") != nil || s.Cache.Get("endpoints", "goner", "e-7") != nil || s.Cache.Get("secrets", "goner", "held") == nil {
		t.Error("what had no finalizer should be gone, and what had one be there")
	}
	must(call("PATCH", "/api/v1/namespaces/goner/secrets/held", map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil))
	servertest.Eventually(t, func() bool {
		return apierrors.IsNotFound(call("GET", "/api/v1/namespaces/goner", nil, nil))
	})
}

// late has creates of ConfigMaps that are called "late" wait between the look at their
// namespace and their commit.
type late struct{ waits, release chan struct{} }

func (late) Name() string                        { return "Late" }
func (late) Handles(op admission.Operation) bool { return op == admission.Create }

func (l late) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Name == "late" {
		l.waits <- struct{}{}
		select {
		case <-l.release:
		case <-ctx.Done():
		}
	}
	return nil
}

// An object whose create found its namespace, and commits when that is gone, does not stay,
// whatever holds it.
func TestNothingStaysInANamespaceThatIsGone(t *testing.T) {
	l := late{make(chan struct{}), make(chan struct{})}
	s := servertest.Start(t, quickly, func(c *server.Config) { c.Plugins = []admission.Plugin{l} })
	ctx := context.Background()
	call := func(method, path string, body any) error {
		return s.Call(ctx, "test", method, path, "application/json", body, nil)
	}
	if err := call("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "goner"}}); err != nil {
		t.Fatal(err)
	}
	created := make(chan error, 1)
	go func() {
		created <- call("POST", "/api/v1/namespaces/goner/configmaps", &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "late", Finalizers: []string{"x.example/hold"}},
		})
	}()
	<-l.waits
	if err := call("DELETE", "/api/v1/namespaces/goner", nil); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, func() bool { return apierrors.IsNotFound(call("GET", "/api/v1/namespaces/goner", nil)) })
	close(l.release)
	if err := <-created; !apierrors.IsNotFound(err) {
		t.Errorf("an object in a namespace that is gone: %v", err)
	}
	servertest.Eventually(t, func() bool { return s.Cache.Get("configmaps", "goner", "late") == nil })
}

// With the gate, nothing else goes before the last Pod has gone.
func TestPodsGoFirst(t *testing.T) {
	s := servertest.Start(t, quickly, func(c *server.Config) { c.Controllers.PodsFirst = true })
	ctx := context.Background()
	call := func(method, path string, body, into any) {
		t.Helper()
		contentType := "application/json"
		if method == "PATCH" {
			contentType = "application/merge-patch+json"
		}
		if err := s.Call(ctx, "test", method, path, contentType, body, into); err != nil {
			t.Fatal(err)
		}
	}
	call("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "goner"}}, nil)
	servertest.Eventually(t, func() bool { return s.Cache.Get("serviceaccounts", "goner", "default") != nil })
	call("POST", "/api/v1/namespaces/goner/pods", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"x.example/hold"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, nil)
	call("POST", "/api/v1/namespaces/goner/configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, nil)
	call("DELETE", "/api/v1/namespaces/goner", nil, nil)
	var ns corev1.Namespace
	servertest.Eventually(t, func() bool {
		call("GET", "/api/v1/namespaces/goner", nil, &ns)
		return len(ns.Status.Conditions) > 0
	})
	for _, c := range ns.Status.Conditions { // like a stock controller, which does not mention Pods
		if c.Status != corev1.ConditionFalse {
			t.Errorf("%+v", c)
		}
	}
	if s.Cache.Get("configmaps", "goner", "x") == nil {
		t.Error("a ConfigMap went before the Pods")
	}
	call("PATCH", "/api/v1/namespaces/goner/pods/held", map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil)
	servertest.Eventually(t, func() bool { return s.Cache.Get("namespaces", "", "goner") == nil })
}

// Namespaces with much in them, and those that something holds, keep no others waiting.
func TestNamespacesDoNotWaitForOthers(t *testing.T) {
	s := servertest.Start(t, quickly, func(c *server.Config) { c.Controllers.NamespaceWorkers = 2 })
	ctx := context.Background()
	call := func(method, path string, body any) {
		t.Helper()
		if err := s.Call(ctx, "test", method, path, "application/json", body, nil); err != nil {
			t.Fatal(err)
		}
	}
	make := func(name string, finalizers ...string) {
		t.Helper()
		call("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		call("POST", "/api/v1/namespaces/"+name+"/configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Finalizers: finalizers}})
	}
	for i := range 20 {
		make("held-"+strconv.Itoa(i), "x.example/hold")
		call("DELETE", "/api/v1/namespaces/held-"+strconv.Itoa(i), nil)
	}
	for i := range 20 {
		make("free-" + strconv.Itoa(i))
		call("DELETE", "/api/v1/namespaces/free-"+strconv.Itoa(i), nil)
	}
	for i := range 20 {
		servertest.Eventually(t, func() bool { return s.Cache.Get("namespaces", "", "free-"+strconv.Itoa(i)) == nil })
		if s.Cache.Get("namespaces", "", "held-"+strconv.Itoa(i)) == nil {
			t.Errorf("held-%d is gone", i)
		}
	}
}
