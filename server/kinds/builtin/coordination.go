package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/coordination"
)

func (c Config) coordinationV1() []*kinds.Resource {
	return rows("coordination.k8s.io", "v1",
		&kinds.Resource{
			Plural: "leases", Kind: "Lease", Namespaced: true,
			New: object[coordinationv1.Lease](), NewList: list[coordinationv1.LeaseList](),
			Storage: &kinds.Storage{Strategy: coordination.Lease(c.Feature)}, Columns: coordination.LeaseColumns,
		},
	)
}

func coordinationV1alpha2() []*kinds.Resource {
	return rows("coordination.k8s.io", "v1alpha2",
		&kinds.Resource{
			Plural: "leasecandidates", Kind: "LeaseCandidate", Namespaced: true,
			New: object[coordinationv1alpha2.LeaseCandidate](), NewList: list[coordinationv1alpha2.LeaseCandidateList](),
			Storage: &kinds.Storage{Strategy: coordination.LeaseCandidate}, Columns: coordination.LeaseCandidateColumns,
		},
	)
}
