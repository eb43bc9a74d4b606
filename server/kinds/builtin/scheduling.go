package builtin

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/scheduling"
	schedulingv1alpha2 "github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
)

func (c Config) schedulingGroup() []*kinds.Resource {
	v1 := rows("scheduling.k8s.io", "v1",
		&kinds.Resource{
			Plural: "priorityclasses", Kind: "PriorityClass", ShortNames: []string{"pc"},
			New: object[schedulingv1.PriorityClass](), NewList: list[schedulingv1.PriorityClassList](),
			Storage: &kinds.Storage{Strategy: scheduling.PriorityClass}, Columns: scheduling.PriorityClassColumns,
		},
	)
	return append(v1, rows("scheduling.k8s.io", "v1alpha2",
		&kinds.Resource{
			Plural: "podgroups", Kind: "PodGroup", Namespaced: true, Gate: "GenericWorkload",
			New: object[schedulingv1alpha2.PodGroup](), NewList: list[schedulingv1alpha2.PodGroupList](),
			Storage: &kinds.Storage{Strategy: scheduling.PodGroup(c.Feature)}, Columns: scheduling.PodGroupColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "workloads", Kind: "Workload", Namespaced: true, Gate: "GenericWorkload",
			New: object[schedulingv1alpha2.Workload](), NewList: list[schedulingv1alpha2.WorkloadList](),
			Storage: &kinds.Storage{Strategy: scheduling.Workload(c.Feature)}, Columns: scheduling.WorkloadColumns,
		},
	)...)
}
