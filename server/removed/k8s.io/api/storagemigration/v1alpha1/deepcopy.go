package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// DeepCopyObject returns a copy of s.
func (s *StorageVersionMigration) DeepCopyObject() runtime.Object { return deepcopy.Object(s) }

// DeepCopyObject returns a copy of s.
func (s *StorageVersionMigrationList) DeepCopyObject() runtime.Object { return deepcopy.Object(s) }
