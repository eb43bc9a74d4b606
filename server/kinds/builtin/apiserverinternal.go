package builtin

import (
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apiserverinternal"
)

func apiserverinternalV1alpha1() []*kinds.Resource {
	return rows("internal.apiserver.k8s.io", "v1alpha1",
		&kinds.Resource{
			Plural: "storageversions", Kind: "StorageVersion",
			New: object[apiserverinternalv1alpha1.StorageVersion](), NewList: list[apiserverinternalv1alpha1.StorageVersionList](),
			Storage: &kinds.Storage{Strategy: apiserverinternal.StorageVersion}, Columns: apiserverinternal.StorageVersionColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
}
