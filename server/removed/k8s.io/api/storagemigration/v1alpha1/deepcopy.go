package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies all of m into out.
func (m *StorageVersionMigration) DeepCopyInto(out *StorageVersionMigration) {
	*out = *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	m.Status.DeepCopyInto(&out.Status)
}

// DeepCopy copies all of m.
func (m *StorageVersionMigration) DeepCopy() *StorageVersionMigration {
	if m == nil {
		return nil
	}
	out := new(StorageVersionMigration)
	m.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies all of m.
func (m *StorageVersionMigration) DeepCopyObject() runtime.Object {
	if m == nil {
		return nil
	}
	return m.DeepCopy()
}

// DeepCopyInto copies all of s into out.
func (s *StorageVersionMigrationStatus) DeepCopyInto(out *StorageVersionMigrationStatus) {
	*out = *s
	out.Conditions = slices.Clone(s.Conditions)
	for i := range out.Conditions {
		s.Conditions[i].LastUpdateTime.DeepCopyInto(&out.Conditions[i].LastUpdateTime)
	}
}

// DeepCopyInto copies all of l into out.
func (l *StorageVersionMigrationList) DeepCopyInto(out *StorageVersionMigrationList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]StorageVersionMigration, len(l.Items))
	}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
}

// DeepCopyObject copies all of l.
func (l *StorageVersionMigrationList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := new(StorageVersionMigrationList)
	l.DeepCopyInto(out)
	return out
}
