package core_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/core"
)

// pools has the allocated addresses and ports, as the store has them.
type pools map[string]map[string]string

func (p pools) Taken(pool, name string) bool { return p[pool][name] != "" }
func (p pools) Removed(pool string) int64    { return p.state(pool) }
func (p pools) Changed(storage string) int64 { return p.state(storage) }

// state is another number for another content.
func (p pools) state(pool string) int64 {
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(p[pool])) {
		fmt.Fprintf(h, "%q=%q ", name, p[pool][name])
	}
	return int64(h.Sum64())
}

func (p pools) Each(storage string, fn func(string, int64, []byte)) {
	for _, name := range slices.Sorted(maps.Keys(p[storage])) {
		fn(name, int64(len(p[storage][name])), []byte(p[storage][name]))
	}
}

// commit makes a plan true, and fails where the store would refuse it.
func (p pools) commit(t *testing.T, take, release []kinds.Claim) {
	t.Helper()
	for _, c := range release {
		if p[c.Pool][c.Name] == "" {
			t.Errorf("%s %s is given back, but nobody has it", c.Pool, c.Name)
		}
		delete(p[c.Pool], c.Name)
	}
	for _, c := range take {
		if p[c.Pool] == nil {
			p[c.Pool] = make(map[string]string)
		}
		if other := p[c.Pool][c.Name]; other != "" {
			t.Errorf("%s %s is taken by %s", c.Pool, c.Name, other)
		}
		p[c.Pool][c.Name] = c.Owner
	}
}

func (p pools) all() []string {
	var list []string
	for _, pool := range p {
		for name := range pool {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

type cluster struct {
	t        *testing.T
	strategy kinds.Strategy
	pools    pools
}

func newCluster(t *testing.T, networks ...string) *cluster {
	var prefixes []netip.Prefix
	for _, n := range networks {
		prefixes = append(prefixes, netip.MustParsePrefix(n))
	}
	return &cluster{t: t, strategy: core.Service(core.NewServiceAllocator(prefixes, 30000, 30099), off), pools: pools{}}
}

// write does what a create (old is nil) or an update does with a service.
func (c *cluster) write(s, old *corev1.Service) (*corev1.Service, error) {
	c.t.Helper()
	ctx := context.Background()
	s = s.DeepCopy()
	s.Namespace, s.Name = "shop", "web"
	c.strategy.Default(s)
	var before kinds.Object
	if old != nil {
		before = old.DeepCopy()
	}
	take, release, err := c.strategy.Allocate.Plan(ctx, s, before, c.pools, false)
	if err != nil {
		return nil, err
	}
	if old == nil {
		c.strategy.PrepareForCreate(ctx, s)
		if errs := c.strategy.Validate(ctx, s); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
	} else {
		c.strategy.PrepareForUpdate(ctx, s, before)
		if errs := c.strategy.ValidateUpdate(ctx, s, before); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
	}
	c.pools.commit(c.t, take, release)
	return s, nil
}

func (c *cluster) must(s, old *corev1.Service) *corev1.Service {
	c.t.Helper()
	out, err := c.write(s, old)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func service(change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	s.Spec.Selector = map[string]string{"app": "web"}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// A service that changes its type over and over holds what it needs and no more,
// and keeps its address.
func TestServiceLife(t *testing.T) {
	c := newCluster(t, "10.96.0.0/16")
	s := c.must(service(nil), nil)
	address := s.Spec.ClusterIP
	if !netip.MustParsePrefix("10.96.0.0/16").Contains(netip.MustParseAddr(address)) || !slices.Equal(c.pools.all(), []string{address}) {
		t.Fatalf("address %q, taken %v", address, c.pools.all())
	}
	change := func(f func(*corev1.ServiceSpec)) {
		t.Helper()
		next := s.DeepCopy()
		f(&next.Spec)
		s = c.must(next, s)
	}
	change(func(spec *corev1.ServiceSpec) { spec.Type = corev1.ServiceTypeNodePort })
	port := s.Spec.Ports[0].NodePort
	if port < 30000 || port > 30099 || len(c.pools.all()) != 2 {
		t.Fatalf("node port %d, taken %v", port, c.pools.all())
	}
	change(func(spec *corev1.ServiceSpec) {
		spec.Type = corev1.ServiceTypeLoadBalancer
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	if s.Spec.Ports[0].NodePort != port || s.Spec.HealthCheckNodePort == 0 || len(c.pools.all()) != 3 {
		t.Fatalf("ports %v and %d, taken %v", s.Spec.Ports, s.Spec.HealthCheckNodePort, c.pools.all())
	}
	change(func(spec *corev1.ServiceSpec) { spec.Type = corev1.ServiceTypeClusterIP })
	if s.Spec.ClusterIP != address || s.Spec.Ports[0].NodePort != 0 || s.Spec.HealthCheckNodePort != 0 ||
		s.Spec.ExternalTrafficPolicy != "" || s.Spec.AllocateLoadBalancerNodePorts != nil || !slices.Equal(c.pools.all(), []string{address}) {
		t.Fatalf("back to ClusterIP: %+v, taken %v", s.Spec, c.pools.all())
	}
	change(func(spec *corev1.ServiceSpec) {
		spec.Type, spec.ExternalName = corev1.ServiceTypeExternalName, "db.example.org"
	})
	if s.Spec.ClusterIP != "" || s.Spec.IPFamilyPolicy != nil || s.Spec.InternalTrafficPolicy != nil || len(c.pools.all()) != 0 {
		t.Fatalf("ExternalName: %+v, taken %v", s.Spec, c.pools.all())
	}
}

// A manifest that is sent again moves nothing, by whatever fields it leaves out.
func TestServiceSentAgain(t *testing.T) {
	c := newCluster(t, "10.96.0.0/16")
	manifest := service(func(spec *corev1.ServiceSpec) {
		spec.Type = corev1.ServiceTypeLoadBalancer
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 81}, {Name: "c", Port: 80, Protocol: corev1.ProtocolUDP}}
	})
	s := c.must(manifest, nil)
	if s.Spec.Ports[0].NodePort != s.Spec.Ports[2].NodePort || len(c.pools.all()) != 4 {
		t.Fatalf("ports %v, taken %v", s.Spec.Ports, c.pools.all())
	}
	taken := c.pools.all()
	if diff := cmp.Diff(s.Spec, c.must(manifest, s).Spec); diff != "" {
		t.Errorf("sent again: %s", diff)
	}
	if diff := cmp.Diff(taken, c.pools.all()); diff != "" {
		t.Errorf("taken: %s", diff)
	}
	_, release, err := c.strategy.Allocate.Plan(context.Background(), nil, s, c.pools, false)
	if err != nil {
		t.Fatal(err)
	}
	c.pools.commit(t, nil, release)
	if left := c.pools.all(); len(left) != 0 {
		t.Errorf("after the delete there is left %v", left)
	}
}

func TestServiceFamilies(t *testing.T) {
	both := []string{"10.96.0.0/16", "fd00:1::/108"}
	policy := func(p corev1.IPFamilyPolicy) func(*corev1.ServiceSpec) {
		return func(spec *corev1.ServiceSpec) { spec.IPFamilyPolicy = &p }
	}
	for _, c := range []struct {
		name     string
		networks []string
		change   func(*corev1.ServiceSpec)
		families string
		err      string
	}{
		{"default", both, nil, "IPv4", ""},
		{"default of IPv6", []string{"fd00:1::/108"}, nil, "IPv6", ""},
		{"prefer both", both, policy(corev1.IPFamilyPolicyPreferDualStack), "IPv4 IPv6", ""},
		{"prefer both, get one", both[:1], policy(corev1.IPFamilyPolicyPreferDualStack), "IPv4", ""},
		{"require both", both, policy(corev1.IPFamilyPolicyRequireDualStack), "IPv4 IPv6", ""},
		{"require both, have one", both[:1], policy(corev1.IPFamilyPolicyRequireDualStack), "", "not configured for dual-stack"},
		{"the other one", both, func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }, "IPv6", ""},
		{"by address", both, func(s *corev1.ServiceSpec) { s.ClusterIP = "fd00:1::5" }, "IPv6", ""},
		{"foreign address", both[:1], func(s *corev1.ServiceSpec) { s.ClusterIP = "fd00:1::5" }, "", "IPv6 is not configured on this cluster"},
		{"headless without selector", both[:1], func(s *corev1.ServiceSpec) { s.ClusterIP, s.Selector = "None", nil }, "IPv4 IPv6", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := newCluster(t, c.networks...).write(service(c.change), nil)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("want an error with %q, got %v", c.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Trim(fmt.Sprint(s.Spec.IPFamilies), "[]"); got != c.families {
				t.Errorf("families %s", got)
			}
			if s.Spec.ClusterIP != "None" && len(s.Spec.ClusterIPs) != len(s.Spec.IPFamilies) {
				t.Errorf("addresses %v for families %v", s.Spec.ClusterIPs, s.Spec.IPFamilies)
			}
		})
	}
}

// The second family comes and goes with the policy, and takes its address along.
func TestServiceSecondFamily(t *testing.T) {
	c := newCluster(t, "10.96.0.0/16", "fd00:1::/108")
	s := c.must(service(nil), nil)
	first := s.Spec.ClusterIP
	set := func(p corev1.IPFamilyPolicy) {
		t.Helper()
		next := s.DeepCopy()
		next.Spec.IPFamilyPolicy = &p
		s = c.must(next, s)
	}
	set(corev1.IPFamilyPolicyRequireDualStack)
	if len(s.Spec.ClusterIPs) != 2 || s.Spec.ClusterIPs[0] != first || len(c.pools.all()) != 2 {
		t.Fatalf("addresses %v, taken %v", s.Spec.ClusterIPs, c.pools.all())
	}
	set(corev1.IPFamilyPolicySingleStack)
	if !slices.Equal(s.Spec.ClusterIPs, []string{first}) || !slices.Equal(c.pools.all(), []string{first}) {
		t.Fatalf("addresses %v, taken %v", s.Spec.ClusterIPs, c.pools.all())
	}
}

func TestServiceRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*corev1.ServiceSpec)
		err    string
	}{
		{"network address", func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.0" }, "the provided IP (10.96.0.0) is not in the valid range. The range of valid IPs is 10.96.0.0/30"},
		{"broadcast address", func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.3" }, "not in the valid range"},
		{"taken address", func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.1" }, "failed to allocate IP 10.96.0.1: provided IP is already allocated"},
		{"taken port", func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30000 }, "provided port is already allocated"},
		{"port out of range", func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30100 }, "The range of valid ports is 30000-30099"},
		{"no ports", func(s *corev1.ServiceSpec) { s.Ports = nil }, "spec.ports: Required value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, "10.96.0.0/30")
			cl.pools.commit(t, []kinds.Claim{{Pool: "serviceips", Name: "10.96.0.1", Owner: "x/y"}, {Pool: "serviceports", Name: "30000", Owner: "x/y"}}, nil)
			if _, err := cl.write(service(c.change), nil); err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("want an error with %q, got %v", c.err, err)
			}
		})
	}
}

// Every address is handed out once, and then the range is full.
func TestServiceAddressesRunOut(t *testing.T) {
	c := newCluster(t, "10.96.0.0/28")
	for range 14 {
		c.must(service(nil), nil)
	}
	if _, err := c.write(service(nil), nil); err == nil || !strings.Contains(err.Error(), "range is full") {
		t.Errorf("want a full range, got %v", err)
	}
}

// off enables no gate, in release 1.32.
func off(string) bool { return false }
