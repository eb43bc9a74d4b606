package structural

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rowlock/rowlock/server/release"
	definitions "github.com/rowlock/rowlock/server/schema"
)

// objectMeta is the name of the definition of metadata among those of built-in kinds.
const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// metaModels are this definition and those that it refers to.
var metaModels = sync.OnceValues(func() (map[string]*spec.Schema, error) {
	raw := definitions.Definitions(release.Default, objectMeta) // all releases have the same
	models := make(map[string]*spec.Schema, len(raw))
	for name, text := range raw {
		models[name] = &spec.Schema{}
		if err := json.Unmarshal(text, models[name]); err != nil {
			return nil, fmt.Errorf("read the schema of metadata: %w", err)
		}
	}
	return models, nil
})

// TypeConverter returns the converter that merges objects of a kind by this schema, with its list types and keys. Building it
// takes some milliseconds.
func (s *Schema) TypeConverter(gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	meta, err := metaModels()
	if err != nil {
		return nil, err
	}
	models := make(map[string]*spec.Schema, len(meta)+1)
	for name, model := range meta {
		models[name] = model
	}
	models[gvk.Group+"."+gvk.Version+"."+gvk.Kind] = s.model(gvk)
	return managedfields.NewTypeConverter(models, s.preserve)
}

// model describes the kind as OpenAPI does.
func (s *Schema) model(gvk schema.GroupVersionKind) *spec.Schema {
	model := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	if s.tree != nil {
		tree := s.tree.DeepCopy()
		tree.XEmbeddedResource = false // it is not inside of anything
		model = tree.ToKubeOpenAPI()
		embed(model, tree)
		model.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMeta))
		model.SetProperty("apiVersion", *spec.StringProperty())
		model.SetProperty("kind", *spec.StringProperty())
	}
	model.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	return model
}

// embed gives resources that are embedded somewhere in a schema the fields of every
// resource.
func embed(model *spec.Schema, s *structuralschema.Structural) {
	for name, below := range s.Properties {
		property := model.Properties[name]
		embed(&property, &below)
		model.Properties[name] = property
	}
	if s.Items != nil {
		embed(model.Items.Schema, s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		embed(model.AdditionalProperties.Schema, s.AdditionalProperties.Structural)
	}
	if !s.XEmbeddedResource {
		return
	}
	model.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMeta))
	for _, name := range []string{"apiVersion", "kind"} {
		model.SetProperty(name, *spec.StringProperty())
		if !slices.Contains(model.Required, name) {
			model.Required = append(model.Required, name)
		}
	}
}
