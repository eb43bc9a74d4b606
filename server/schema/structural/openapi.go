package structural

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rowlock/rowlock/server/release"
)

// OpenAPI returns the OpenAPI 3 schema of the kind of a version, as JSON. Without a schema, it is an object of
// unknown fields. The validators are not made for it.
func OpenAPI(v *apiextensionsv1.CustomResourceDefinitionVersion, preserveUnknown bool, of release.Version) ([]byte, error) {
	props, err := propsOf(v)
	if err != nil {
		return nil, err
	}
	s := &Schema{preserve: preserveUnknown}
	if err := s.buildTree(props); err != nil {
		return nil, fmt.Errorf("read the schema of version %s: %w", v.Name, err)
	}
	if s.tree == nil {
		return json.Marshal(&spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}})
	}
	tree := s.tree                 // not shared
	tree.XEmbeddedResource = false // it is not inside of anything
	if !of.Has(release.ExamplesPublished) {
		(&structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
			s.Example, s.ExternalDocs = structuralschema.JSON{}, nil
			return true
		}}).Visit(tree)
	}
	model := tree.ToKubeOpenAPI()
	embed(model, tree)
	kind, partial := metav1.TypeMeta{}.SwaggerDoc(), metav1.PartialObjectMetadata{}.SwaggerDoc()
	for _, name := range []string{"apiVersion", "kind"} {
		model.SetProperty(name, *spec.StringProperty().WithDescription(kind[name]))
	}
	metadata := spec.Schema{SchemaProps: spec.SchemaProps{
		Description: partial["metadata"], Default: map[string]any{}, AllOf: []spec.Schema{*spec.RefSchema("#/components/schemas/" + objectMeta)},
	}}
	model.SetProperty("metadata", metadata)
	return json.Marshal(model)
}
