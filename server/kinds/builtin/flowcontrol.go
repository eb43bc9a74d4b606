package builtin

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
)

func (c Config) flowcontrolV1() []*kinds.Resource {
	return rows("flowcontrol.apiserver.k8s.io", "v1",
		&kinds.Resource{
			Plural: "flowschemas", Kind: "FlowSchema",
			New: object[flowcontrolv1.FlowSchema](), NewList: list[flowcontrolv1.FlowSchemaList](),
			Storage: &kinds.Storage{Strategy: flowcontrol.FlowSchema(c.Feature)}, Columns: flowcontrol.FlowSchemaColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "prioritylevelconfigurations", Kind: "PriorityLevelConfiguration",
			New: object[flowcontrolv1.PriorityLevelConfiguration](), NewList: list[flowcontrolv1.PriorityLevelConfigurationList](),
			Storage: &kinds.Storage{Strategy: flowcontrol.PriorityLevelConfiguration(c.Feature)}, Columns: flowcontrol.PriorityLevelConfigurationColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
}
