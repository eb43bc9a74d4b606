package embed_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/embed"
)

// seen notes what rules are shown of writes of a status.
type seen struct {
	mu    sync.Mutex
	whole map[string][]bool // by kind, of each object
}

// look is a rule that notes whether objects have what a patch of their status leaves alone.
func (s *seen) look(_ context.Context, w *embed.Write) error {
	if w.Subresource != "status" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, obj := range []runtime.Object{w.Object, w.Old} {
		switch o := obj.(type) {
		case *corev1.Pod:
			s.whole["Pod"] = append(s.whole["Pod"], len(o.Spec.Containers) == 1)
		case *apiextensionsv1.CustomResourceDefinition:
			schema := o.Spec.Versions[0].Schema
			s.whole["Definition"] = append(s.whole["Definition"], schema != nil && schema.OpenAPIV3Schema != nil && schema.OpenAPIV3Schema.Type == "object")
		}
	}
	return nil
}

// TestRulesSeeWholeObjects: a patch of a status leaves most of a Pod or a definition unread; rules of the
// program that embeds the server are shown all of both states nevertheless, before and behind what changes.
func TestRulesSeeWholeObjects(t *testing.T) {
	for _, when := range []string{"Mutate", "Validate"} {
		t.Run(when, func(t *testing.T) {
			s := &seen{whole: map[string][]bool{}}
			rule := embed.Admission{Name: "looks", Mutate: s.look}
			if when == "Validate" {
				rule = embed.Admission{Name: "looks", Validate: s.look}
			}
			cp, _ := start(t, embed.Options{Admission: []embed.Admission{rule}})
			c := clients(t, cp.Config())
			no := false
			if _, err := c.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Spec:       corev1.PodSpec{AutomountServiceAccountToken: &no, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			patch := []byte(`{"status":{"conditions":[{"type":"Odd","status":"True","reason":"A","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
			if _, err := c.CoreV1().Pods("default").Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			definition, err := json.Marshal(&apiextensionsv1.CustomResourceDefinition{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
				ObjectMeta: metav1.ObjectMeta{Name: "lamps.example.com"},
				Spec: apiextensionsv1.CustomResourceDefinitionSpec{
					Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
					Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps", Kind: "Lamp"},
					Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
			rest := c.CoreV1().RESTClient()
			if err := rest.Post().AbsPath(path).Body(definition).Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
			if err := rest.Patch(types.MergePatchType).AbsPath(path, "lamps.example.com", "status").Body(patch).Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, kind := range []string{"Pod", "Definition"} {
				if len(s.whole[kind]) < 2 {
					t.Errorf("of each %s rules were shown %d objects", kind, len(s.whole[kind]))
				}
				for i, whole := range s.whole[kind] {
					if !whole {
						t.Errorf("object %d of a %s is not whole", i, kind)
					}
				}
			}
		})
	}
}
