package structural

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateScale checks the fields that the scale subresource reads.
func (s *Schema) validateScale(obj map[string]any) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	return append(validateReplicas(obj, s.scale.SpecReplicasPath), s.validateScaleStatus(obj)...)
}

func (s *Schema) validateScaleStatus(obj map[string]any) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	errs := validateReplicas(obj, s.scale.StatusReplicasPath)
	if at := s.scale.LabelSelectorPath; at != nil {
		if selector, _, err := unstructured.NestedString(obj, steps(*at)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*at), selector, err.Error()))
		}
	}
	return errs
}

func validateReplicas(obj map[string]any, at string) field.ErrorList {
	n, _, err := unstructured.NestedInt64(obj, steps(at)...)
	detail := ""
	switch {
	case err != nil:
		detail = err.Error()
	case n < 0:
		detail = "should be a non-negative integer"
	case n > math.MaxInt32:
		detail = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(at), n, detail)}
}

// steps returns the fields of a simple JSONPath, ".spec.replicas".
func steps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
