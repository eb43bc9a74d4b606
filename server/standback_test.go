package server_test

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestControllersStandBack: while another process holds the Lease of kube-controller-manager, its controllers do not run here; when
// the Lease is released, they do.
func TestControllersStandBack(t *testing.T) {
	s := servertest.Start(t, quickly)
	ctx := context.Background()
	call := func(method, path string, body, into any) {
		t.Helper()
		if err := s.Call(ctx, "test", method, path, "application/json", body, into); err != nil {
			t.Fatal(err)
		}
	}
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	namespace := func(name string) {
		t.Helper()
		call("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil)
	}
	account := func(namespace string) bool { return s.Cache.Get("serviceaccounts", namespace, "default") != nil }
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager", Namespace: "kube-system"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("manager"), LeaseDurationSeconds: ptr.To(int32(300))},
	}
	namespace("before")
	servertest.Eventually(t, func() bool { return account("before") })
	call("POST", leases, lease, lease)
	servertest.Eventually(t, func() bool {
		return bytes.Contains(s.Must("GET", "/metrics", ""), []byte("\nrowlock_controllers_standing_back 1"))
	})
	for _, name := range []string{"serviceaccount", "namespace"} { // each ends by itself
		servertest.Eventually(t, func() bool {
			return bytes.Contains(s.Must("GET", "/metrics", ""), []byte(`name="`+name+`-controller"} 0`))
		})
	}
	namespace("beside")
	call("DELETE", "/api/v1/namespaces/before", nil, nil)
	for i := range 20 { // requests that our controllers would have overtaken
		namespace("more-" + strconv.Itoa(i))
	}
	if account("beside") || s.Cache.Get("namespaces", "", "before") == nil {
		t.Error("a controller works though it is to stand back")
	}
	lease.Spec.HolderIdentity = ptr.To("")
	call("PUT", leases+"/kube-controller-manager", lease, nil)
	servertest.Eventually(t, func() bool { return account("beside") && s.Cache.Get("namespaces", "", "before") == nil })
}
