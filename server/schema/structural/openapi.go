package structural

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// OpenAPI is the OpenAPI 3 schema of a kind whose schema this is, as JSON. Without a
// schema, it is an object of which nothing is known.
func (s *Schema) OpenAPI() ([]byte, error) {
	if s.tree == nil {
		return json.Marshal(&spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}})
	}
	tree := s.tree.DeepCopy()
	tree.XEmbeddedResource = false // it is not inside of anything
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
