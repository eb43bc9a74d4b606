package builtin

import (
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/storagemigration"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

// storagemigrationGroup serves StorageVersionMigrations in the version of the release, and stores them in v1alpha1.
func (c Config) storagemigrationGroup() []*kinds.Resource {
	alpha := rows("storagemigration.k8s.io", "v1alpha1",
		&kinds.Resource{
			Plural: "storageversionmigrations", Kind: "StorageVersionMigration", Gate: "StorageVersionMigrator",
			New: object[storagemigrationv1alpha1.StorageVersionMigration](), NewList: list[storagemigrationv1alpha1.StorageVersionMigrationList](),
			Storage: &kinds.Storage{Strategy: storagemigration.Migration}, Columns: storagemigration.MigrationColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
	beta := again(alpha[0], "v1beta1")
	beta.New, beta.NewList = object[storagemigrationv1beta1.StorageVersionMigration](), list[storagemigrationv1beta1.StorageVersionMigrationList]()
	beta.ToStorage, beta.FromStorage = kinds.Conversion(beta.New, alpha[0].New, storagemigration.Different)
	if c.Release.Introduced(beta.GVK()) {
		s := alpha[0].Storage
		s.Strategy = storagemigration.MigrationV1beta1
		beta.Subresources = []kinds.Subresource{status()}
		beta.Sub("status").Kind, beta.Sub("status").Update = beta.Kind, s.Status
	}
	return append([]*kinds.Resource{beta}, alpha...)
}
