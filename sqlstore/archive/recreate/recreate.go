// Package recreate removes fields from an object that would be wrong, or refused, when it is created again: in
// another cluster, or with another UID.
package recreate

// filled are fields of the metadata that a server sets, and that prevent creating the object again or
// changing it.
var filled = []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// Object changes an object of a resource ("pods", "jobs.batch") in place: it removes fields that a server
// sets, and references by UID to others or itself. Owners, finalizers and the status stay.
func Object(resource string, object map[string]any) {
	Metadata(object)
	RemoveReferences(resource, object)
}

// Metadata deletes the fields of an object's metadata that a server fills in.
func Metadata(object map[string]any) {
	meta := child(object, "metadata")
	for _, name := range filled {
		delete(meta, name)
	}
}

// RemoveReferences removes fields that refer to other objects, or to the object itself, by UID, if a server
// or controller would refuse them.
func RemoveReferences(resource string, object map[string]any) {
	spec := child(object, "spec")
	switch resource {
	case "jobs.batch":
		if manual, _ := spec["manualSelector"].(bool); manual {
			return
		}
		delete(spec, "selector") // made from the UID
		for _, meta := range []map[string]any{child(object, "metadata"), child(child(spec, "template"), "metadata")} {
			for _, name := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
				delete(child(meta, "labels"), name)
			}
		}
	case "persistentvolumes":
		for _, name := range []string{"uid", "resourceVersion"} {
			delete(child(spec, "claimRef"), name)
		}
	case "secrets":
		if object["type"] == "kubernetes.io/service-account-token" {
			delete(child(child(object, "metadata"), "annotations"), "kubernetes.io/service-account.uid")
			delete(child(object, "data"), "token")
		}
	}
}

// child returns the map under a name; nil, from which nothing can be deleted, where there is none.
func child(object map[string]any, name string) map[string]any {
	c, _ := object[name].(map[string]any)
	return c
}
