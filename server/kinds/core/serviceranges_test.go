package core_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/core"
)

// serviceCIDR is an encoded ServiceCIDR; ready is "" for one without a condition.
func serviceCIDR(t *testing.T, ready string, deleted bool, cidrs ...string) string {
	t.Helper()
	var c networkingv1beta1.ServiceCIDR
	c.Spec.CIDRs = cidrs
	if ready != "" {
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(ready)}}
	}
	if deleted {
		now := metav1.Now()
		c.DeletionTimestamp = &now
	}
	data, err := json.Marshal(&c)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRanges: addresses come from the networks of ServiceCIDRs that are ready, and each has
// an IPAddress.
func TestRanges(t *testing.T) {
	a := core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, 30000, 30099).FollowRanges()
	for _, c := range []struct {
		name  string
		cidrs map[string]string
		taken []string // IPAddresses that there are
		ip    string   // that is asked for, "" for any
		want  string   // a part of the error, or of the address
	}{
		{"that of the start", nil, nil, "10.0.0.9", "10.0.0.9"},
		{"none is known", nil, nil, "10.1.0.9", "the provided network does not match the current range"},
		{"another", map[string]string{"b": serviceCIDR(t, "", false, "10.1.0.0/24")}, nil, "10.1.0.9", "10.1.0.9"},
		{"beside that of the start", map[string]string{"b": serviceCIDR(t, "", false, "10.1.0.0/24")}, nil, "10.0.0.9", "10.0.0.9"},
		{"the default one says what it is", map[string]string{"kubernetes": serviceCIDR(t, "True", false, "10.2.0.0/24")}, nil, "10.0.0.9", "does not match"},
		{"not ready", map[string]string{"b": serviceCIDR(t, "False", false, "10.1.0.0/24")}, nil, "10.1.0.9", "does not match"},
		{"going", map[string]string{"b": serviceCIDR(t, "True", true, "10.1.0.0/24")}, nil, "10.1.0.9", "does not match"},
		{"the first address", map[string]string{"b": serviceCIDR(t, "True", false, "10.1.0.0/24")}, nil, "10.1.0.0", "the provided IP (10.1.0.0) is not in the valid range. The range of valid IPs is 10.1.0.0/24"},
		{"the last address", map[string]string{"b": serviceCIDR(t, "True", false, "10.1.0.0/24")}, nil, "10.1.0.255", "is not in the valid range"},
		{"the last address, inside of a wider network", map[string]string{"b": serviceCIDR(t, "True", false, "10.1.0.0/24"), "c": serviceCIDR(t, "True", false, "10.1.0.0/16")}, nil, "10.1.0.255", "10.1.0.255"},
		{"held by others", nil, []string{"10.0.0.9"}, "10.0.0.9", "provided IP is already allocated"},
		{"any", map[string]string{"kubernetes": serviceCIDR(t, "False", false, "10.0.0.0/24"), "b": serviceCIDR(t, "True", false, "10.1.0.0/24")}, nil, "", "10.1.0."},
		{"any, the first network is full", map[string]string{"kubernetes": serviceCIDR(t, "True", false, "10.0.0.0/30"), "z": serviceCIDR(t, "True", false, "10.1.0.0/29")}, []string{"10.0.0.1", "10.0.0.2", "10.1.0.1"}, "", "10.1.0."},
		{"none is left", map[string]string{"kubernetes": serviceCIDR(t, "True", false, "10.0.0.0/30")}, []string{"10.0.0.1", "10.0.0.2"}, "", "failed to allocate a serviceIP: range is full"},
	} {
		p := pools{core.ServiceCIDRStorage: c.cidrs, core.IPAddressStorage: {}}
		for _, ip := range c.taken {
			p[core.IPAddressStorage][ip] = "other"
		}
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		s.Spec.Type, s.Spec.ClusterIP = corev1.ServiceTypeClusterIP, c.ip
		take, _, err := a.Plan(context.Background(), s, nil, p, false)
		got := s.Spec.ClusterIP
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if err == nil {
			checkShown(t, c.name, s.Spec.ClusterIP, take)
		}
	}
}

// checkShown: an address is taken as a row and as an IPAddress that names the service.
func checkShown(t *testing.T, name, ip string, take []kinds.Claim) {
	t.Helper()
	if len(take) != 2 || take[0].Object != nil || take[0].Name != ip || take[1].Name != ip || take[1].Pool != core.IPAddressStorage {
		t.Errorf("%s: %s is taken as %+v", name, ip, take)
		return
	}
	a, ok := take[1].Object.(*networkingv1beta1.IPAddress)
	if !ok || a.Name != ip || a.UID == "" || a.CreationTimestamp.IsZero() || a.Labels[core.LabelFamily] != "IPv4" || *a.Spec.ParentRef != (networkingv1beta1.ParentReference{Resource: "services", Namespace: "shop", Name: "web"}) {
		t.Errorf("%s: the IPAddress is %+v", name, take[1].Object)
	}
}

// TestRangesAreGivenBack: a service that goes gives back both.
func TestRangesAreGivenBack(t *testing.T) {
	a := core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, 30000, 30099).FollowRanges()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	s.Spec.Type, s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ServiceTypeClusterIP, "10.0.0.9", []string{"10.0.0.9"}
	_, release, err := a.Plan(context.Background(), nil, s, pools{}, false)
	if err != nil || len(release) != 2 || release[0].Pool == release[1].Pool || release[0].Name != "10.0.0.9" || release[1].Name != "10.0.0.9" {
		t.Errorf("%+v, %v", release, err)
	}
}
