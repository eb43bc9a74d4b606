package v1alpha1

// SwaggerDoc describes the type, under "", and its fields.
func (StorageVersionMigration) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "StorageVersionMigration represents a migration of stored data to the latest storage version.",
		"metadata": "Standard object metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
		"spec":     "Specification of the migration.",
		"status":   "Status of the migration.",
	}
}

// SwaggerDoc describes the type, under "", and its fields.
func (StorageVersionMigrationList) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "StorageVersionMigrationList is a collection of storage version migrations.",
		"metadata": "Standard list metadata More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
		"items":    "Items is the list of StorageVersionMigration",
	}
}

// SwaggerDoc describes the type, under "", and its fields.
func (StorageVersionMigrationSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":              "Spec of the storage version migration.",
		"resource":      "The resource that is being migrated. The migrator sends requests to the endpoint serving the resource. Immutable.",
		"continueToken": "The token used in the list options to get the next chunk of objects to migrate. When the .status.conditions indicates the migration is \"Running\", users can use this token to check the progress of the migration.",
	}
}

// SwaggerDoc describes the type, under "", and its fields.
func (StorageVersionMigrationStatus) SwaggerDoc() map[string]string {
	return map[string]string{
		"":                "Status of the storage version migration.",
		"conditions":      "The latest available observations of the migration's current state.",
		"resourceVersion": "ResourceVersion to compare with the GC cache for performing the migration. This is the current resource version of given group, version and resource when kube-controller-manager first observes this StorageVersionMigration resource.",
	}
}

// SwaggerDoc describes the type, under "", and its fields.
func (MigrationCondition) SwaggerDoc() map[string]string {
	return map[string]string{
		"":               "Describes the state of a migration at a certain point.",
		"type":           "Type of the condition.",
		"status":         "Status of the condition, one of True, False, Unknown.",
		"lastUpdateTime": "The last time this condition was updated.",
		"reason":         "The reason for the condition's last transition.",
		"message":        "A human readable message indicating details about the transition.",
	}
}

// SwaggerDoc describes the type, under "", and its fields.
func (GroupVersionResource) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "The names of the group, the version, and the resource.",
		"group":    "The name of the group.",
		"version":  "The name of the version.",
		"resource": "The name of the resource.",
	}
}
