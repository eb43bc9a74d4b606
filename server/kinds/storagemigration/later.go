package storagemigration

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

// MigrationV1beta1 has the rules for StorageVersionMigrations in releases that serve v1beta1, which names no
// version of resources. They are stored in v1alpha1.
var MigrationV1beta1 = kinds.Through[storagemigrationv1beta1.StorageVersionMigration](Different, kinds.Typed[*storagemigrationv1beta1.StorageVersionMigration]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &kinds.WholeMeta,
	Validate:     validateV1beta1,
	ValidateUpdate: func(m, old *storagemigrationv1beta1.StorageVersionMigration) field.ErrorList {
		return append(validateV1beta1(m), rules.Immutable(m.Spec, old.Spec, field.NewPath("spec"))...)
	},
	Status: &kinds.Status[*storagemigrationv1beta1.StorageVersionMigration]{
		Prepare: func(m, old *storagemigrationv1beta1.StorageVersionMigration) {
			metav1.ResetObjectMetaForStatus(&m.ObjectMeta, &old.ObjectMeta)
		},
		Validate:    validateStatusV1beta1,
		ResetFields: []string{"metadata"},
	},
}.Strategy())

// Different converts conditions, whose time has another name in v1beta1 (see kinds.Conversion).
func Different(to, from reflect.Value) bool {
	switch c := to.Addr().Interface().(type) {
	case *metav1.Condition:
		old := from.Interface().(storagemigrationv1alpha1.MigrationCondition)
		*c = metav1.Condition{Type: string(old.Type), Status: metav1.ConditionStatus(old.Status), LastTransitionTime: old.LastUpdateTime, Reason: old.Reason, Message: old.Message, ObservedGeneration: old.ObservedGeneration}
	case *storagemigrationv1alpha1.MigrationCondition:
		newer := from.Interface().(metav1.Condition)
		*c = storagemigrationv1alpha1.MigrationCondition{Type: storagemigrationv1alpha1.MigrationConditionType(newer.Type), Status: corev1.ConditionStatus(newer.Status), LastUpdateTime: newer.LastTransitionTime, Reason: newer.Reason, Message: newer.Message, ObservedGeneration: newer.ObservedGeneration}
	default:
		return false
	}
	return true
}

func validateV1beta1(m *storagemigrationv1beta1.StorageVersionMigration) field.ErrorList {
	p, r := field.NewPath("spec", "resource"), m.Spec.Resource
	errs := rules.RequiredIf(nil, r.Resource == "", p.Child("resource"), "resource is required to be set")
	check := func(value, name string, messages []string) {
		errs = rules.InvalidIf(errs, value != "" && len(messages) > 0, p.Child(name), value, strings.Join(messages, ","))
	}
	check(r.Resource, "resource", validation.IsDNS1035Label(r.Resource))
	check(r.Group, "group", validation.IsDNS1123Subdomain(r.Group))
	return errs
}

// has reports whether a condition of a migration is true.
func has(m *storagemigrationv1beta1.StorageVersionMigration, condition storagemigrationv1beta1.MigrationConditionType) bool {
	return slices.ContainsFunc(m.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(condition) && c.Status == metav1.ConditionTrue
	})
}

func validateStatusV1beta1(m, old *storagemigrationv1beta1.StorageVersionMigration) field.ErrorList {
	const succeeded, failed = storagemigrationv1beta1.MigrationSucceeded, storagemigrationv1beta1.MigrationFailed
	version, conditions := field.NewPath("status", "resourceVersion"), field.NewPath("status", "conditions")
	rv, was := m.Status.ResourceVersion, old.Status.ResourceVersion
	var errs field.ErrorList
	if rv != "" {
		if _, err := resourceversion.CompareResourceVersion(rv, rv); err != nil {
			errs = append(errs, field.Invalid(version, rv, err.Error()))
		}
	}
	errs = append(errs, rules.Conditions(m.Status.Conditions, conditions)...)
	errs = rules.InvalidIf(errs, was != "" && rv != was, version, rv, "field is immutable")
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{has(m, succeeded) && has(m, failed), "Both success and failed conditions cannot be true at the same time"},
		{has(old, succeeded) && !has(m, succeeded), "Success condition cannot be set to false once it is true"},
		{has(old, failed) && !has(m, failed), "Failed condition cannot be set to false once it is true"},
	} {
		errs = rules.InvalidIf(errs, rule.broken, conditions, rules.Shown(m.Status.Conditions), rule.message)
	}
	return errs
}
