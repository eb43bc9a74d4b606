package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"

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
