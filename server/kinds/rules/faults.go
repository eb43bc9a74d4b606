package rules

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The library's checks make errors for every item of a list, hundreds of bytes for an item of three. The checks of this file
// pass it a list only up to its maxFaulty-th faulty item, which refuses the object for more reasons than an answer lists.
const maxFaulty = MaxErrors / 4

// upTo returns a list up to the last of at most maxFaulty faulty items.
func upTo[T any](list []T, faulty func(*T) bool) []T {
	if len(list) <= maxFaulty {
		return list
	}
	faults := 0
	for i := range list {
		if !faulty(&list[i]) {
			continue
		}
		if faults++; faults == maxFaulty {
			return list[:i+1]
		}
	}
	return list
}

// someOf returns a map, or maxFaulty faulty entries of one with more of them.
func someOf(m map[string]string, faulty func(key, value string) bool) map[string]string {
	if len(m) <= maxFaulty {
		return m
	}
	some := map[string]string{}
	for k, v := range m {
		if !faulty(k, v) {
			continue
		}
		if some[k] = v; len(some) == maxFaulty {
			return some
		}
	}
	return m
}

func badLabel(key, value string) bool {
	return len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0
}

func badAnnotation(key, _ string) bool {
	return len(apivalidation.ValidateAnnotations(map[string]string{key: ""}, nil)) > 0
}

// Labels checks labels.
func Labels(labels map[string]string, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabels(someOf(labels, badLabel), path)
}

// Annotations checks the keys of annotations, and their size.
func Annotations(annotations map[string]string, path *field.Path) field.ErrorList {
	return apivalidation.ValidateAnnotations(someOf(annotations, badAnnotation), path)
}

// Conditions checks the conditions of a status.
func Conditions(list []metav1.Condition, path *field.Path) field.ErrorList {
	return metavalidation.ValidateConditions(upTo(list, func(c *metav1.Condition) bool {
		return len(metavalidation.ValidateCondition(*c, nil)) > 0
	}), path)
}

// LooseSelector is Selector for one that may keep invalid label values of an older object.
func LooseSelector(s *metav1.LabelSelector, keepInvalid bool, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	o := metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: keepInvalid}
	errs := Labels(s.MatchLabels, path.Child("matchLabels"))
	return append(errs, LabelRequirements(s.MatchExpressions, o, path.Child("matchExpressions"))...)
}

// LabelRequirements checks the requirements of a label selector.
func LabelRequirements(list []metav1.LabelSelectorRequirement, o metavalidation.LabelSelectorValidationOptions, path *field.Path) field.ErrorList {
	return Each(list, path, func(r metav1.LabelSelectorRequirement, at *field.Path) field.ErrorList {
		if !o.AllowInvalidLabelValueInSelector {
			r.Values = upTo(r.Values, func(v *string) bool { return len(validation.IsValidLabelValue(*v)) > 0 })
		}
		return metavalidation.ValidateLabelSelectorRequirement(r, o, at)
	})
}

// metadata is the metadata of an object, with as many of its items as are checked. The managers of its fields are the server's own by
// then.
type metadata struct {
	metav1.Object
	labels, annotations map[string]string
	owners              []metav1.OwnerReference
	finalizers          []string
}

func (m *metadata) GetLabels() map[string]string                { return m.labels }
func (m *metadata) GetAnnotations() map[string]string           { return m.annotations }
func (m *metadata) GetOwnerReferences() []metav1.OwnerReference { return m.owners }
func (m *metadata) GetFinalizers() []string                     { return m.finalizers }

// Metadata returns the metadata of an object for the library's checks.
func Metadata(obj metav1.Object) metav1.Object {
	return &metadata{
		Object: obj, labels: someOf(obj.GetLabels(), badLabel), annotations: someOf(obj.GetAnnotations(), badAnnotation),
		owners: upTo(obj.GetOwnerReferences(), func(r *metav1.OwnerReference) bool {
			return len(apivalidation.ValidateOwnerReferences([]metav1.OwnerReference{*r}, nil)) > 0
		}),
		finalizers: upTo(obj.GetFinalizers(), func(name *string) bool {
			return len(apivalidation.ValidateFinalizerName(*name, nil)) > 0
		}),
	}
}
