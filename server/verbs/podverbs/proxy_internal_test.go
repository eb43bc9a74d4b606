package podverbs

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestAddressesOfOnePod: thousands of addresses that name the same pods read each pod once.
func TestAddressesOfOnePod(t *testing.T) {
	read := 0
	pods := podAddresses{namespace: "ns", find: func(pod string) []string {
		read++
		if pod == "there" {
			return []string{"10.0.0.1", "fd00::1"}
		}
		return nil
	}}
	address := func(ip, namespace, pod string) *corev1.EndpointAddress {
		return &corev1.EndpointAddress{IP: ip, TargetRef: &corev1.ObjectReference{Namespace: namespace, Name: pod}}
	}
	for i := range 10_000 {
		for _, pod := range []string{"there", "gone"} {
			if a := address(fmt.Sprintf("10.1.%d.%d", i/256, i%256), "ns", pod); pods.has(a) {
				t.Fatalf("%s is an address of the pod %q", a.IP, pod)
			}
		}
	}
	for _, c := range []struct {
		of   *corev1.EndpointAddress
		want bool
	}{
		{address("10.0.0.1", "ns", "there"), true},
		{address("fd00::1", "ns", "there"), true},
		{address("10.0.0.1", "ns", "gone"), false},
		{address("10.0.0.1", "other", "there"), false},
		{&corev1.EndpointAddress{IP: "10.0.0.1"}, false},
	} {
		if got := pods.has(c.of); got != c.want {
			t.Errorf("%+v: %v", c.of, got)
		}
	}
	if read != 2 {
		t.Errorf("two pods were read %d times", read)
	}
}
