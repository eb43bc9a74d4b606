package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"

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

// coordinationBetas are LeaseCandidates in their two versions, of which v1alpha2 is stored.
func coordinationBetas() []*kinds.Resource {
	alpha := rows("coordination.k8s.io", "v1alpha2",
		&kinds.Resource{
			Plural: "leasecandidates", Kind: "LeaseCandidate", Namespaced: true,
			New: object[coordinationv1beta1.LeaseCandidate](), NewList: list[coordinationv1beta1.LeaseCandidateList](),
			Storage: &kinds.Storage{Strategy: coordination.LeaseCandidate}, Columns: coordination.LeaseCandidateColumns,
		},
	)
	return append([]*kinds.Resource{again(alpha[0], "v1beta1")}, alpha...)
}
