package builtin

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/endpointslice"
)

func (c Config) discoveryV1() []*kinds.Resource {
	return rows("discovery.k8s.io", "v1",
		&kinds.Resource{
			Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true,
			New: object[discoveryv1.EndpointSlice](), NewList: list[discoveryv1.EndpointSliceList](),
			Storage: &kinds.Storage{Strategy: without(c, endpointslice.EndpointSlice(c.Feature), &discoveryv1.EndpointSlice{}, dropHints, "TopologyAwareHints", "ServiceTrafficDistribution")}, Columns: endpointslice.EndpointSliceColumns,
		},
	)
}
