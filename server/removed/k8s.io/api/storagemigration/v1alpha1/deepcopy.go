package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// DeepCopyInto copies all of m into out.
func (m *StorageVersionMigration) DeepCopyInto(out *StorageVersionMigration) {
	*out = *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	m.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject copies all of m.
func (m *StorageVersionMigration) DeepCopyObject() runtime.Object { return deepcopy.Object(m) }

// DeepCopyInto copies all of s into out.
func (s *StorageVersionMigrationStatus) DeepCopyInto(out *StorageVersionMigrationStatus) {
	*out = *s
	out.Conditions = slices.Clone(s.Conditions)
}

// DeepCopyInto copies all of l into out.
func (l *StorageVersionMigrationList) DeepCopyInto(out *StorageVersionMigrationList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = deepcopy.List(l.Items)
}

// DeepCopyObject copies all of l.
func (l *StorageVersionMigrationList) DeepCopyObject() runtime.Object { return deepcopy.Object(l) }
