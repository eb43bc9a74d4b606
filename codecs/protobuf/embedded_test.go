package protobuf_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
)

// TestEmbeddedJSON: bytes that stand for JSON must be valid JSON. Comparisons of objects panic on others.
func TestEmbeddedJSON(t *testing.T) {
	for raw, valid := range map[string]bool{``: true, `{}`: true, `{"a":[1]}`: true, `"`: false, `{`: false, `[`: false, `1z`: false, `z`: false} {
		revision := &appsv1.ControllerRevision{
			TypeMeta: metav1.TypeMeta{Kind: "ControllerRevision", APIVersion: "apps/v1"}, Data: runtime.RawExtension{Raw: []byte(raw)},
		}
		definition := &apiextensionsv1.CustomResourceDefinition{TypeMeta: metav1.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"}}
		definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"a": {AllOf: []apiextensionsv1.JSONSchemaProps{{Default: &apiextensionsv1.JSON{Raw: []byte(raw)}}}},
			}},
		}}}
		for _, obj := range []runtime.Object{revision, definition} {
			data, err := protobuf.Codec{}.Encode(nil, obj)
			if err != nil {
				t.Fatal(err)
			}
			into := obj.DeepCopyObject()
			if _, err := (protobuf.Codec{}).Decode(data, into, codecs.Strict); (err == nil) != valid {
				t.Errorf("%T of %q: %v", obj, raw, err)
			}
		}
	}
}
