package builtin

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/scheduling"
)

func schedulingV1() []*kinds.Resource {
	return rows("scheduling.k8s.io", "v1",
		&kinds.Resource{
			Plural: "priorityclasses", Kind: "PriorityClass", ShortNames: []string{"pc"},
			New: object[schedulingv1.PriorityClass](), NewList: list[schedulingv1.PriorityClassList](),
			Storage: &kinds.Storage{Strategy: scheduling.PriorityClass}, Columns: scheduling.PriorityClassColumns,
		},
	)
}
