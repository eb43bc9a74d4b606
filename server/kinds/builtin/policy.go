package builtin

import (
	policyv1 "k8s.io/api/policy/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/policy"
)

func policyV1() []*kinds.Resource {
	return rows("policy", "v1",
		&kinds.Resource{
			Plural: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true, ShortNames: []string{"pdb"},
			New: object[policyv1.PodDisruptionBudget](), NewList: list[policyv1.PodDisruptionBudgetList](),
			Storage: &kinds.Storage{Strategy: policy.PodDisruptionBudget}, Columns: policy.PodDisruptionBudgetColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
}
