package builtin

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apiextensions"
	"github.com/rowlock/rowlock/server/release"
)

func apiextensionsV1(of release.Version) []*kinds.Resource {
	return rows("apiextensions.k8s.io", "v1",
		&kinds.Resource{
			Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition", ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			New: object[apiextensionsv1.CustomResourceDefinition](), NewList: list[apiextensionsv1.CustomResourceDefinitionList](),
			Storage:      &kinds.Storage{Registry: "apiextensions.k8s.io/customresourcedefinitions", KeepEmpty: true, CostlyFrom: 16 << 10, HashedVersion: "v1beta1", Strategy: apiextensions.CustomResourceDefinition(of)},
			Subresources: []kinds.Subresource{noTable(status())},
		},
	)
}
