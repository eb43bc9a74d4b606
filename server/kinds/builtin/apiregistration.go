package builtin

import (
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
)

func apiregistrationV1() []*kinds.Resource {
	return rows("apiregistration.k8s.io", "v1",
		&kinds.Resource{
			Plural: "apiservices", Kind: "APIService", Categories: []string{"api-extensions"},
			New: object[apiregistrationv1.APIService](), NewList: list[apiregistrationv1.APIServiceList](),
			Storage: &kinds.Storage{Registry: "apiregistration.k8s.io/apiservices", KeepEmpty: true, Strategy: apiregistration.APIService}, Columns: apiregistration.APIServiceColumns,
			Subresources: []kinds.Subresource{noTable(status())},
		},
	)
}
