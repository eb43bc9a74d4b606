package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/release"
)

// serviceCIDR returns an encoded ServiceCIDR; ready is "" for one without a condition.
func serviceCIDR(t *testing.T, ready string, deleted bool, cidrs ...string) string {
	t.Helper()
	var c networkingv1.ServiceCIDR
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

// TestRangesOfReleases: the IPAddress of a Service is made by whom servers of the release write as.
func TestRangesOfReleases(t *testing.T) {
	for v, want := range map[release.Version]string{release.V132: "kube-apiserver", release.V136: "kube-apiserver-1.36"} {
		a := core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, 30000, 30099).FollowRanges().OfRelease(v)
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		s.Spec.Type = corev1.ServiceTypeClusterIP
		take, _, err := a.Plan(t.Context(), s, nil, pools{core.IPAddressStorage: {}}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range take {
			if c.Pool != core.IPAddressStorage {
				continue
			}
			if got := c.Object.(metav1.Object).GetManagedFields(); len(got) != 1 || got[0].Manager != want {
				t.Errorf("%v: %v", v, got)
			}
		}
	}
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
		{"the first address", map[string]string{"b": serviceCIDR(t, "True", false, "10.1.0.0/24")}, nil, "10.1.0.0", "the provided network does not match the current range"},
		{"the last address", map[string]string{"b": serviceCIDR(t, "True", false, "10.1.0.0/24")}, nil, "10.1.0.255", "the provided network does not match the current range"},
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

// TestRangesOfDryRuns: like that of a stock server, a dry run finds no fault with an address that is taken.
func TestRangesOfDryRuns(t *testing.T) {
	a := core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, 30000, 30099).FollowRanges()
	for ip, want := range map[string]string{
		"10.0.0.9": "",
		"10.0.0.0": "failed to allocate IP 10.0.0.0: the provided IP (10.0.0.0) is not in the valid range. The range of valid IPs is 10.0.0.0/24",
		"10.1.0.9": "failed to allocate IP 10.1.0.9: the provided IP (10.1.0.9) is not in the valid range. The range of valid IPs is 10.0.0.0/24",
	} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		s.Spec.Type, s.Spec.ClusterIP = corev1.ServiceTypeClusterIP, ip
		take, _, err := a.Plan(t.Context(), s, nil, pools{core.IPAddressStorage: {"10.0.0.9": "other"}}, true)
		if got := fmt.Sprint(err); len(take) > 0 || want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v %+v, want %q", ip, err, take, want)
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
	a, ok := take[1].Object.(*networkingv1.IPAddress)
	if !ok || a.Name != ip || a.UID == "" || a.CreationTimestamp.IsZero() || a.Labels[core.LabelFamily] != "IPv4" || *a.Spec.ParentRef != (networkingv1.ParentReference{Resource: "services", Namespace: "shop", Name: "web"}) {
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

// still are claims that change only by a test, and count how often they are read.
type still struct {
	pools
	removed, changed int64
	asked            int
}

func (s *still) Removed(string) int64 { return s.removed }
func (s *still) Changed(string) int64 { return s.changed }

func (s *still) Taken(pool, name string) bool {
	s.asked++
	return s.pools.Taken(pool, name)
}

func (s *still) Each(storage string, fn func(string, int64, []byte)) {
	s.asked++
	s.pools.Each(storage, fn)
}

// full are claims of all addresses of a network of 2^bits.
func full(network string, bits int) *still {
	s := &still{pools: pools{core.IPAddressStorage: {}, "serviceips": {}, core.ServiceCIDRStorage: {}}}
	addr := netip.MustParseAddr(network)
	for range 1<<bits - 2 {
		addr = addr.Next()
		s.pools["serviceips"][addr.String()], s.pools[core.IPAddressStorage][addr.String()] = "other", "other"
	}
	return s
}

// plan requests an address, and returns it or the error.
func plan(a *core.ServiceAllocator, c kinds.Claims) string {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	s.Spec.Type = corev1.ServiceTypeClusterIP
	if _, _, err := a.Plan(context.Background(), s, nil, c, false); err != nil {
		return err.Error()
	}
	return s.Spec.ClusterIP
}

// TestFullNetworks: the exhaustion of a network is computed once, until an address is released. ServiceCIDRs
// are read once a change.
func TestFullNetworks(t *testing.T) {
	plain := core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, 30000, 30099)
	for name, a := range map[string]*core.ServiceAllocator{
		"one network": plain,
		"ranges":      core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, 30000, 30099).FollowRanges(),
	} {
		c := full("10.0.0.0", 8)
		for range 3 {
			if got := plan(a, c); !strings.Contains(got, "range is full") {
				t.Fatalf("%s: %s", name, got)
			}
		}
		if c.asked > 300 {
			t.Errorf("%s: claims were asked %d times, for 254 addresses", name, c.asked)
		}
		delete(c.pools["serviceips"], "10.0.0.77")
		delete(c.pools[core.IPAddressStorage], "10.0.0.77")
		if c.removed++; plan(a, c) != "10.0.0.77" {
			t.Errorf("%s: the address that was given back is not found", name)
		}
		c.pools[core.ServiceCIDRStorage]["b"] = serviceCIDR(t, "True", false, "10.1.0.0/24")
		c.pools["serviceips"]["10.0.0.77"] = "other"
		if c.changed++; name == "ranges" && !strings.HasPrefix(plan(a, c), "10.1.0.") {
			t.Errorf("%s: the new network is not used", name)
		}
	}
}

// TestFullFamilies: addresses of one family do not count as those of the other.
func TestFullFamilies(t *testing.T) {
	c := &still{pools: pools{"serviceips": {}}}
	addr := netip.MustParseAddr("2001:db8::")
	for range 300 {
		addr = addr.Next()
		c.pools["serviceips"][addr.String()] = "other"
	}
	a := core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("2001:db8::/108")}, 30000, 30099)
	if got := plan(a, c); !strings.HasPrefix(got, "10.0.0.") {
		t.Errorf("%s, where only IPv6 addresses are taken", got)
	}
}

// BenchmarkRanges is a Service that gets an address: with many ServiceCIDRs, and with all
// networks full.
func BenchmarkRanges(b *testing.B) {
	for _, test := range []struct {
		name   string
		ranges int
		full   bool
	}{{"1-range", 1, false}, {"1000-ranges", 1000, false}, {"full-65534-addresses", 1, true}, {"full-and-1000-full-ranges", 1000, true}} {
		b.Run(test.name, func(b *testing.B) {
			c := full("10.0.0.0", 16)
			ready := `{"spec":{"cidrs":["%s"]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
			c.pools[core.ServiceCIDRStorage]["kubernetes"] = fmt.Sprintf(ready, "10.0.0.0/16")
			for i := range test.ranges - 1 { // of no address, which is full from the start
				c.pools[core.ServiceCIDRStorage][fmt.Sprint("r", i)] = fmt.Sprintf(ready, fmt.Sprintf("10.%d.%d.0/32", 1+i/250, i%250))
			}
			if !test.full {
				delete(c.pools["serviceips"], "10.0.200.1")
				delete(c.pools[core.IPAddressStorage], "10.0.200.1")
				c.pools[core.ServiceCIDRStorage]["a"] = fmt.Sprintf(ready, "172.16.0.0/16")
			}
			a := core.NewServiceAllocator([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, 30000, 30099).FollowRanges()
			plan(a, c) // computed once
			b.ReportAllocs()
			for b.Loop() {
				if got := plan(a, c); strings.Contains(got, "full") != test.full {
					b.Fatal(got)
				}
			}
		})
	}
}
