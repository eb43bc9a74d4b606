package core_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/release"
)

func TestWarnings(t *testing.T) {
	balancer := func(s corev1.ServiceSpec) *corev1.Service {
		s.Type = corev1.ServiceTypeLoadBalancer
		return &corev1.Service{Spec: s}
	}
	plain, old := &corev1.ServiceAccount{}, &corev1.ServiceAccount{}
	old.Annotations = map[string]string{"kubernetes.io/enforce-mountable-secrets": "true"}
	mountable := []string{"metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
	for _, c := range []struct {
		strategy kinds.Strategy
		obj, old kinds.Object
		want     []string
	}{
		{core.ServiceAccount, old, nil, mountable},
		{core.ServiceAccount, old, plain, mountable},
		{core.ServiceAccount, old, old, nil},
		{core.ServiceAccount, plain, old, nil},
		{core.Service(nil, off), balancer(corev1.ServiceSpec{LoadBalancerIP: "fe80::1", LoadBalancerSourceRanges: []string{"1.2.3.4/8"}}), nil, nil},
		{core.Service(nil, off), balancer(corev1.ServiceSpec{LoadBalancerIP: "x"}), nil,
			[]string{`spec.loadBalancerIP: IP address was accepted, but will be invalid in a future Kubernetes release: ParseAddr("x"): unable to parse IP`}},
		{core.Service(nil, off), balancer(corev1.ServiceSpec{LoadBalancerIP: "fe80:0::1"}), nil,
			[]string{`spec.loadBalancerIP: IPv6 address "fe80:0::1" is not in RFC 5952 canonical format ("fe80::1"), which may cause controller apply-loops`}},
		{core.Service(nil, off), balancer(corev1.ServiceSpec{LoadBalancerSourceRanges: []string{"01.0.0.0/8", "fe80:0::/64"}}), nil, []string{
			`spec.loadBalancerSourceRanges[0]: IP prefix was accepted, but will be invalid in a future Kubernetes release: netip.ParsePrefix("01.0.0.0/8"): ParseAddr("01.0.0.0"): IPv4 field has octet with leading zero`,
			`spec.loadBalancerSourceRanges[1]: IPv6 prefix "fe80:0::/64" is not in RFC 5952 canonical format ("fe80::/64"), which may cause controller apply-loops`,
		}},
		{core.Secret, &corev1.Secret{Data: map[string][]byte{"tls.crt": nil, "tls.key": nil}}, nil, nil},
		{core.Secret, &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}}, nil,
			[]string{"tls: failed to find any PEM data in certificate input"}},
		{core.PersistentVolumeClaim(gates.New(release.Default).Enabled), &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{"storage": resource.MustParse("1500m")}, Limits: corev1.ResourceList{"storage": resource.MustParse("1700m")},
		}}}, nil, []string{
			`spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`,
			`spec.resources.limits[storage]: fractional byte value "1700m" is invalid, must be an integer`,
		}},
		{core.PersistentVolume(gates.New(release.Default).Enabled), &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/os"}, {Key: "node-role.kubernetes.io/master"}, {Key: "beta.kubernetes.io/os"}}}},
		}}}}, nil, []string{
			`spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[1].key: node-role.kubernetes.io/master is use "node-role.kubernetes.io/control-plane" instead`,
			`spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[2].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`,
		}},
	} {
		if diff := cmp.Diff(c.want, c.strategy.Warnings(context.Background(), c.obj, c.old)); diff != "" {
			t.Errorf("%+v: %s", c.obj, diff)
		}
	}
}
