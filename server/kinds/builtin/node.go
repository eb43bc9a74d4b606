package builtin

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/node"
)

func (c Config) nodeV1() []*kinds.Resource {
	return rows("node.k8s.io", "v1",
		&kinds.Resource{
			Plural: "runtimeclasses", Kind: "RuntimeClass",
			New: object[nodev1.RuntimeClass](), NewList: list[nodev1.RuntimeClassList](),
			Storage: &kinds.Storage{Strategy: node.RuntimeClass(c.Feature)}, Columns: node.RuntimeClassColumns,
		},
	)
}
