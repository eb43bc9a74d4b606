package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// The API's treatment of a kind. A stock server treats built-in kinds and custom ones differently in some
// respects that clients see; each difference has a method here.

// custom reports whether the resource is served from a schema at run time.
func (r *Resource) custom() bool { return r.Schema != nil }

// defined reports whether the resource comes from a CustomResourceDefinition.
func (r *Resource) defined() bool { return r.custom() && !r.Reserved }

// whole reports whether a subresource is another way to read or write the object itself; so
// is no subresource.
func whole(sub *Subresource) bool { return sub == nil || sub.Update != nil }

// Protobuf reports whether objects have a Protobuf form. Without one they are answered so
// only as metadata. sub is the subresource, or nil.
func (r *Resource) Protobuf(sub *Subresource) bool { return !r.custom() || !whole(sub) }

// StrategicMerge reports whether strategic merge patches are served.
func (r *Resource) StrategicMerge() bool { return !r.custom() }

// NegotiatesFirst reports whether unsupported media types are refused before anything else is checked, with
// an error of their own.
func (r *Resource) NegotiatesFirst() bool { return !r.custom() }

// AnyBody reports whether a body of any kind is read, for validation to refuse it.
func (r *Resource) AnyBody() bool { return r.custom() }

// AsMaps reports whether objects and lists are written as maps are: their members sorted by
// name, and each item of a list whole, with its kind and apiVersion.
func (r *Resource) AsMaps() bool { return r.custom() }

// FixedRoutes reports whether each path and method of the resource is a route of its own, so that others are
// not found or not allowed. Otherwise one handler answers for all paths below the group, names the missing
// resource or subresource, and treats HEAD as GET.
func (r *Resource) FixedRoutes() bool { return !r.custom() }

// NamesVersions reports whether discovery names the versions of subresources' kinds even if they are those of
// the resource.
func (r *Resource) NamesVersions() bool { return r.custom() }

// OwnNamespace reports whether each object is a namespace, and in itself.
func (r *Resource) OwnNamespace() bool { return r.Group == "" && r.Plural == "namespaces" }

// NamespaceOf returns the namespace of an object for admission, given that of the request and the object's name.
func (r *Resource) NamespaceOf(namespace, name string) string {
	switch {
	case r.Namespaced:
		return namespace
	case r.OwnNamespace():
		return name
	}
	return ""
}

// OwnLabels reports whether the resource has field selector labels of its own, or that its
// version decided to have none.
func (r *Resource) OwnLabels() bool { return r.FieldLabels != nil || len(r.Storage.Fields) > 0 }

// StoredLabel returns the name of a field selector label of this version in Storage.Fields, or "".
func (r *Resource) StoredLabel(label string) string {
	if r.FieldLabels == nil {
		return label
	}
	return r.FieldLabels[label]
}

// RegistryKey returns the name by which a stock server's messages call an object.
func (r *Resource) RegistryKey(namespace, name string) string {
	path := "/registry/" + r.registry()
	if namespace != "" {
		path += "/" + namespace
	}
	return path + "/" + name
}

func (r *Resource) registry() string {
	switch {
	case r.Storage.Registry != "":
		return r.Storage.Registry
	case r.custom():
		return r.Group + "/" + r.Plural
	}
	return schema.ParseGroupResource(r.Storage.Key).Resource
}
