package builtin

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/networking"
)

// networkingGroup serves the kinds of v1beta1 in v1 too.
func (c Config) networkingGroup() []*kinds.Resource {
	beta := c.networkingV1beta1()
	v1 := append(c.networkingV1(), again(beta[0], "v1"), again(beta[1], "v1"))
	return append(byName(v1), beta...)
}

func (c Config) networkingV1() []*kinds.Resource {
	return rows("networking.k8s.io", "v1",
		&kinds.Resource{
			Plural: "ingressclasses", Kind: "IngressClass",
			New: object[networkingv1.IngressClass](), NewList: list[networkingv1.IngressClassList](),
			Storage: &kinds.Storage{Strategy: networking.IngressClass(c.Feature)}, Columns: networking.IngressClassColumns,
		},
		&kinds.Resource{
			Plural: "ingresses", Kind: "Ingress", Namespaced: true, ShortNames: []string{"ing"},
			New: object[networkingv1.Ingress](), NewList: list[networkingv1.IngressList](),
			Storage: &kinds.Storage{Registry: "ingress", Strategy: networking.Ingress(c.Feature)}, Columns: networking.IngressColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "networkpolicies", Kind: "NetworkPolicy", Namespaced: true, ShortNames: []string{"netpol"},
			New: object[networkingv1.NetworkPolicy](), NewList: list[networkingv1.NetworkPolicyList](),
			Storage: &kinds.Storage{Strategy: networking.NetworkPolicy(c.Feature)}, Columns: networking.NetworkPolicyColumns,
		},
	)
}

// networkingV1beta1 has the kinds that v1 has from 1.33 on, and is the stored version.
func (c Config) networkingV1beta1() []*kinds.Resource {
	return rows("networking.k8s.io", "v1beta1",
		&kinds.Resource{
			Plural: "ipaddresses", Kind: "IPAddress", ShortNames: []string{"ip"},
			New: object[networkingv1.IPAddress](), NewList: list[networkingv1.IPAddressList](),
			Storage: &kinds.Storage{Strategy: networking.IPAddress(c.Feature)}, Columns: networking.IPAddressColumns,
		},
		&kinds.Resource{
			Plural: "servicecidrs", Kind: "ServiceCIDR",
			New: object[networkingv1.ServiceCIDR](), NewList: list[networkingv1.ServiceCIDRList](),
			Storage: &kinds.Storage{Strategy: networking.ServiceCIDR(c.Feature)}, Columns: networking.ServiceCIDRColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
}
