package archive

// untie removes from an object what names others, or itself, by UID, where a server
// or controller would refuse it in another cluster, or beside an object made anew.
func untie(resource string, object map[string]any) {
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

// child is the map under a name; nil, from which nothing can be deleted, where there is none.
func child(object map[string]any, name string) map[string]any {
	c, _ := object[name].(map[string]any)
	return c
}
