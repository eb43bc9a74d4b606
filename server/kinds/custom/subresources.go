package custom

import (
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/server/kinds"
)

// steps returns the fields of a simple JSONPath such as ".spec.replicas".
func steps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func (v *Version) subresources() (out []kinds.Subresource) {
	if v.hasStatus() {
		out = append(out, kinds.Subresource{Name: "status", Kind: v.gvk.Kind, Verbs: subVerbs, Update: v.statusStrategy()})
	}
	if v.spec.Subresources == nil || v.spec.Subresources.Scale == nil {
		return out
	}
	scale := v.spec.Subresources.Scale
	spec, status := steps(scale.SpecReplicasPath), steps(scale.StatusReplicasPath)
	number := func(obj kinds.Object, path []string, absent int32) int32 {
		if n, found, err := unstructured.NestedInt64(tree(obj), path...); found || err != nil {
			return int32(n)
		}
		return absent
	}
	return append(out, kinds.Subresource{
		Name: "scale", Group: autoscalingv1.GroupName, Version: "v1", Kind: "Scale", Verbs: subVerbs,
		Scale: &kinds.ScaleMapping{
			Check: func(obj kinds.Object) error {
				switch _, found, err := unstructured.NestedInt64(tree(obj), spec...); {
				case err != nil:
					return err
				case !found:
					return apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", scale.SpecReplicasPath))
				}
				return nil
			},
			Replicas: func(obj kinds.Object) (int32, int32) {
				return number(obj, spec, kinds.NoReplicas), number(obj, status, 0)
			},
			SetReplicas: func(obj kinds.Object, n int32) {
				// It fails where the path leads through a value that is no map; validation reports that.
				_ = unstructured.SetNestedField(tree(obj), int64(n), spec...)
			},
			Selector: func(obj kinds.Object) string {
				if scale.LabelSelectorPath == nil || *scale.LabelSelectorPath == "" {
					return ""
				}
				selector, _, _ := unstructured.NestedString(tree(obj), steps(*scale.LabelSelectorPath)...)
				return selector
			},
			ReplicasPath: spec,
			AnyNumber:    true,
		},
	})
}
