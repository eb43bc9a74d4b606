package builtin

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/storage"
)

func (c Config) storageV1() []*kinds.Resource {
	return rows("storage.k8s.io", "v1",
		&kinds.Resource{
			Plural: "csidrivers", Kind: "CSIDriver",
			New: object[storagev1.CSIDriver](), NewList: list[storagev1.CSIDriverList](),
			Storage: &kinds.Storage{Strategy: without(c, storage.CSIDriver(c.Feature), &storagev1.CSIDriver{}, dropSELinuxMount, "SELinuxMountReadWriteOncePod")}, Columns: storage.CSIDriverColumns,
		},
		&kinds.Resource{
			Plural: "csinodes", Kind: "CSINode",
			New: object[storagev1.CSINode](), NewList: list[storagev1.CSINodeList](),
			Storage: &kinds.Storage{Strategy: storage.CSINode(c.Feature)}, Columns: storage.CSINodeColumns,
		},
		&kinds.Resource{
			Plural: "csistoragecapacities", Kind: "CSIStorageCapacity", Namespaced: true,
			New: object[storagev1.CSIStorageCapacity](), NewList: list[storagev1.CSIStorageCapacityList](),
			Storage: &kinds.Storage{Strategy: storage.CSIStorageCapacity},
		},
		&kinds.Resource{
			Plural: "storageclasses", Kind: "StorageClass", ShortNames: []string{"sc"},
			New: object[storagev1.StorageClass](), NewList: list[storagev1.StorageClassList](),
			Storage: &kinds.Storage{Strategy: storage.StorageClass(c.Feature)}, Columns: storage.StorageClassColumns,
		},
		&kinds.Resource{
			Plural: "volumeattachments", Kind: "VolumeAttachment",
			New: object[storagev1.VolumeAttachment](), NewList: list[storagev1.VolumeAttachmentList](),
			Storage: &kinds.Storage{Strategy: storage.VolumeAttachment(c.Feature)}, Columns: storage.VolumeAttachmentColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
}

// storageGroup serves VolumeAttributesClasses in three versions, of which v1beta1 is stored.
func (c Config) storageGroup() []*kinds.Resource {
	beta := rows("storage.k8s.io", "v1beta1", &kinds.Resource{
		Plural: "volumeattributesclasses", Kind: "VolumeAttributesClass", ShortNames: []string{"vac"},
		New: object[storagev1.VolumeAttributesClass](), NewList: list[storagev1.VolumeAttributesClassList](),
		Storage: &kinds.Storage{Strategy: storage.VolumeAttributesClass(c.Feature)}, Columns: storage.VolumeAttributesClassColumns,
	})
	return append(c.storageV1(), again(beta[0], "v1"), beta[0], again(beta[0], "v1alpha1"))
}
