package networks_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/networks"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestServiceAddresses: existing Services get IPAddresses, orphaned ones go, others stay, and the
// default ServiceCIDR comes back.
func TestServiceAddresses(t *testing.T) {
	const managed = `"labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}`
	s := servertest.Start(t, servertest.Complete(t, "--runtime-config=networking.k8s.io/v1beta1"), servertest.Idle)
	address := func(name, labels, parent string) {
		s.Must("POST", addresses, `{"metadata":{"name":"`+name+`",`+labels+`},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"`+parent+`"}}}`)
	}
	s.Must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"old"},"spec":{"clusterIP":"10.96.7.7","ports":[{"port":1}]}}`)
	s.Must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"moved"},"spec":{"clusterIP":"10.96.7.8","ports":[{"port":1}]}}`)
	s.Must("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"none"},"spec":{"clusterIP":"None","ports":[{"port":1}]}}`)
	address("10.96.7.8", managed, "another")
	address("10.96.7.9", managed, "gone")
	address("10.96.7.10", `"labels":{}`, "gone")
	startAddresses(t, s, func() time.Time { return time.Now().Add(time.Hour) })
	want := map[string]string{"10.96.7.7": "old", "10.96.7.8": "moved", "10.96.7.9": "", "10.96.7.10": "gone", "10.96.0.1": "kubernetes"}
	servertest.Eventually(t, func() bool {
		for ip, parent := range want {
			if parentOf(t, s, ip) != parent {
				return false
			}
		}
		return s.Do("GET", networksPath+"/kubernetes", "").Code == 200
	})
	s.Must("DELETE", networksPath+"/kubernetes", "")
	servertest.Eventually(t, func() bool { return s.Do("GET", networksPath+"/kubernetes", "").Code == 200 })
}

// TestFreshAddresses: an IPAddress whose Service is not there yet is left alone for a while.
func TestFreshAddresses(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t, "--runtime-config=networking.k8s.io/v1beta1"), servertest.Idle)
	s.Must("POST", addresses, `{"metadata":{"name":"10.96.7.9","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"soon"}}}`)
	startAddresses(t, s, time.Now)
	servertest.Eventually(t, func() bool { return parentOf(t, s, "10.96.0.1") == "kubernetes" }) // made after others went
	if got := parentOf(t, s, "10.96.7.9"); got != "soon" {
		t.Errorf("the address of %q", got)
	}
}

// TestAddressesOfUnreadServices: while a Service cannot be read, no address counts as orphaned.
func TestAddressesOfUnreadServices(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t, "--runtime-config=networking.k8s.io/v1beta1"), servertest.Idle)
	s.Put("services", "default", "broken", "this is no object")
	s.Must("POST", addresses, `{"metadata":{"name":"10.96.7.9","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"broken"}}}`)
	startAddresses(t, s, func() time.Time { return time.Now().Add(time.Hour) })
	servertest.Eventually(t, func() bool { return parentOf(t, s, "10.96.0.1") == "kubernetes" }) // made after others went
	if got := parentOf(t, s, "10.96.7.9"); got != "broken" {
		t.Errorf("the address of %q", got)
	}
}

const (
	addresses    = "/apis/networking.k8s.io/v1beta1/ipaddresses"
	networksPath = "/apis/networking.k8s.io/v1beta1/servicecidrs"
)

// startAddresses runs the controller until the test ends.
func startAddresses(t *testing.T, s *servertest.Server, clock func() time.Time) {
	t.Helper()
	c := networks.Addresses{Base: reconcile.Base{API: s.Server, Cache: s.Cache, Log: controllertest.DiscardLog, Clock: clock, Retry: time.Millisecond}, Networks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// parentOf returns the name of the Service that an IPAddress names, "" where there is none.
func parentOf(t *testing.T, s *servertest.Server, ip string) string {
	t.Helper()
	w := s.Do("GET", addresses+"/"+ip, "")
	if w.Code == 404 {
		return ""
	}
	var a networkingv1.IPAddress
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.Spec.ParentRef == nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return a.Spec.ParentRef.Name
}
