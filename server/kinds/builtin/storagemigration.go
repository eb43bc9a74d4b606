package builtin

import (
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/storagemigration"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

func storagemigrationV1alpha1() []*kinds.Resource {
	return rows("storagemigration.k8s.io", "v1alpha1",
		&kinds.Resource{
			Plural: "storageversionmigrations", Kind: "StorageVersionMigration", Gate: "StorageVersionMigrator",
			New: object[storagemigrationv1alpha1.StorageVersionMigration](), NewList: list[storagemigrationv1alpha1.StorageVersionMigrationList](),
			Storage: &kinds.Storage{Strategy: storagemigration.Migration}, Columns: storagemigration.MigrationColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
}
