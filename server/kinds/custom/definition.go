// Package custom makes resources from CustomResourceDefinitions: one for each version, with names,
// strategies, subresources, columns and selectable fields as the definition declares them.
//
// A resource never changes; the resource of a version that is not served is off; only the schema determines
// the form of objects.
package custom

import (
	"context"
	"fmt"
	"math"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema/structural"
)

// Converter converts objects to another version of one definition. It may change them; the result has the
// order of the input.
type Converter interface {
	Convert(ctx context.Context, to schema.GroupVersion, objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error)
}

// Definition is a CustomResourceDefinition that can be served.
type Definition struct {
	Resources []*kinds.Resource // one for each version, in the order of the definition

	spec      *apiextensionsv1.CustomResourceDefinitionSpec
	names     *apiextensionsv1.CustomResourceDefinitionNames // those that were accepted
	ending    bool
	versions  map[string]*Version
	storage   *Version
	converter Converter
	release   release.Version
}

// Established reports whether a definition is served.
func Established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// Ending reports whether a definition is being deleted, and its objects with it.
func Ending(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating)
}

func (d *Definition) namespaced() bool { return d.spec.Scope == apiextensionsv1.NamespaceScoped }

// Source reads the schemas of a definition, each when it is needed.
type Source struct {
	// Read gives a version with its schema, and how many bytes of text that has.
	Read func(version string) (v *apiextensionsv1.CustomResourceDefinitionVersion, size int, err error)
	// Text gives the schema of a version as it is written, or nil. A nil func gives none.
	Text func(version string) []byte
	// Digests has the digests of the schemas' texts, by version.
	Digests map[string]Digest
	Release release.Version // whose answers the resources give
	Kept    *SchemaCache    // bounds the compiled schemas in memory; nil: no bound
}

// New makes a definition whose schemas are parsed at once. Objects stored after the revision since conform to
// the present schema of the stored version. A nil converter changes only the version in the objects. The
// resources are those of a release. crd must not change any more.
func New(crd *apiextensionsv1.CustomResourceDefinition, since int64, converter Converter, of release.Version) (*Definition, error) {
	versions := map[string]*apiextensionsv1.CustomResourceDefinitionVersion{}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if _, err := structural.New(v, crd.Spec.PreserveUnknownFields, of); err != nil {
			return nil, fmt.Errorf("schema of version %s: %w", v.Name, err)
		}
		versions[v.Name] = v
	}
	return From(crd, since, converter, Source{Read: func(name string) (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) {
		return versions[name], 0, nil
	}, Release: of})
}

// From is New for a definition whose schemas are read where they are needed; those in crd are
// ignored. Where one cannot be read then, writes of objects fail.
func From(crd *apiextensionsv1.CustomResourceDefinition, since int64, converter Converter, schemas Source) (*Definition, error) {
	d := &Definition{
		spec: &crd.Spec, names: &crd.Status.AcceptedNames, versions: map[string]*Version{},
		ending: Ending(crd), converter: converter, release: schemas.Release,
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		made := &Version{of: d, spec: v, gvk: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: d.names.Kind}, since: math.MaxInt64}
		made.kept, made.digest = schemas.Kept, schemas.Digests[v.Name]
		made.read = func() (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) { return schemas.Read(v.Name) }
		if schemas.Text != nil {
			made.text = func() []byte { return schemas.Text(v.Name) }
		}
		d.versions[v.Name] = made
		if v.Storage {
			d.storage, made.since = made, since
		}
	}
	if d.storage == nil {
		return nil, fmt.Errorf("no version of %s is stored", crd.Name)
	}
	for i := range crd.Spec.Versions {
		r := d.resource(d.versions[crd.Spec.Versions[i].Name])
		r.Release = d.release
		d.Resources = append(d.Resources, r)
	}
	return d, nil
}

// Stored returns the version that objects are stored in, or nil.
func Stored(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// Version finds a version, or nil.
func (d *Definition) Version(name string) *Version { return d.versions[name] }

// Served returns the versions that clients may ask for.
func (d *Definition) Served() (out []*Version) {
	for _, v := range d.versions {
		if v.spec.Served {
			out = append(out, v)
		}
	}
	return out
}

var (
	verbs    = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	subVerbs = []string{"get", "patch", "update"}
)

func (d *Definition) resource(v *Version) *kinds.Resource {
	gvk := v.gvk
	r := &kinds.Resource{
		Group: gvk.Group, Version: gvk.Version, Plural: d.names.Plural, Singular: d.names.Singular,
		Kind: gvk.Kind, ListKind: d.names.ListKind, ShortNames: d.names.ShortNames, Categories: d.names.Categories,
		Namespaced: d.spec.Scope == apiextensionsv1.NamespaceScoped, Verbs: verbs, Schema: v,
		Off: !v.spec.Served, Ending: d.ending,
		New: func() kinds.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			return u
		},
		Storage: &kinds.Storage{
			Key: schema.GroupResource{Group: gvk.Group, Resource: d.names.Plural}.String(), GVK: d.storage.gvk,
			Fields: d.fields(), Strategy: v.strategy(),
		},
		FieldLabels: v.labels(), Columns: v.columns(), Deprecation: v.deprecation(), Subresources: v.subresources(),
	}
	if v != d.storage {
		r.ToStorage, r.FromStorage = v.to(d.storage), d.storage.to(v)
	}
	return r
}

// deprecation returns the warning to clients about a deprecated version.
func (v *Version) deprecation() *kinds.Deprecation {
	if !v.spec.Deprecated {
		return nil
	}
	if w := v.spec.DeprecationWarning; w != nil {
		return &kinds.Deprecation{Warning: *w}
	}
	warning := fmt.Sprintf("%s %s is deprecated", v.gvk.GroupVersion(), v.of.spec.Names.Kind)
	best := ""
	for i := range v.of.spec.Versions {
		other := &v.of.spec.Versions[i]
		if !other.Served || other.Deprecated || version.CompareKubeAwareVersionStrings(v.gvk.Version, other.Name) >= 0 {
			continue
		}
		if best == "" || version.CompareKubeAwareVersionStrings(other.Name, best) > 0 {
			best = other.Name
		}
	}
	if best != "" {
		warning += fmt.Sprintf("; use %s/%s %s", v.gvk.Group, best, v.of.spec.Names.Kind)
	}
	return &kinds.Deprecation{Warning: warning}
}
