// Package storagemigration holds the strategy of StorageVersionMigrations: requests to write all
// objects of a resource again, so that they are stored in the current version.
package storagemigration

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

const (
	maxReason  = 1024
	maxMessage = 32 * 1024
)

// Migration has the rules for StorageVersionMigrations.
var Migration = kinds.Typed[*storagemigrationv1alpha1.StorageVersionMigration]{
	ValidateName:   apivalidation.NameIsDNSSubdomain,
	Meta:           &kinds.WholeMeta,
	Validate:       validateMigration,
	ValidateUpdate: validateMigrationUpdate,
	Status: &kinds.Status[*storagemigrationv1alpha1.StorageVersionMigration]{
		KeepsMetadata: true,
		Validate:      validateMigrationStatus,
		ResetFields:   []string{"metadata"},
	},
}.Strategy()

// MigrationColumns is their Table form.
var MigrationColumns = columns.Of(
	func(m *storagemigrationv1alpha1.StorageVersionMigration, _ time.Time) []any {
		r := m.Spec.Resource
		return []any{m.Name, r.Resource + "." + r.Version + "." + r.Group}
	},
	columns.Text("Name", metav1.ObjectMeta{}.SwaggerDoc()["name"]),
	columns.Text("Resource", "Fully qualified resource to migrate"),
)

// MigrationColumnsSince133 is their Table form since release 1.33.
var MigrationColumnsSince133 = columns.Of(
	func(m *storagemigrationv1alpha1.StorageVersionMigration, _ time.Time) []any {
		status := "Unknown"
		for _, c := range m.Status.Conditions {
			if c.Status == corev1.ConditionTrue && slices.Contains(shownConditions, c.Type) {
				status = string(c.Type)
			}
		}
		r := m.Spec.Resource
		return []any{m.Name, schema.GroupResource{Group: r.Group, Resource: r.Resource}.String(), status}
	},
	columns.Text("Name", metav1.ObjectMeta{}.SwaggerDoc()["name"]),
	columns.Text("Resource", "GroupResource to migrate"),
	columns.Text("Status", "Status of the migration"),
)

// shownConditions are the conditions that the Table form shows.
var shownConditions = []storagemigrationv1alpha1.MigrationConditionType{
	storagemigrationv1alpha1.MigrationRunning, storagemigrationv1alpha1.MigrationFailed, storagemigrationv1alpha1.MigrationSucceeded,
}

func validateMigration(m *storagemigrationv1alpha1.StorageVersionMigration) field.ErrorList {
	p := field.NewPath("spec", "resource")
	errs := rules.RequiredIf(nil, m.Spec.Resource.Resource == "", p.Child("resource"), "resource is required")
	return rules.RequiredIf(errs, m.Spec.Resource.Version == "", p.Child("version"), "version is required")
}

func validateMigrationUpdate(m, old *storagemigrationv1alpha1.StorageVersionMigration) field.ErrorList {
	errs := validateMigration(m)
	r, was := m.Spec.Resource, old.Spec.Resource
	errs = append(errs, rules.Immutable(r.Group, was.Group, field.NewPath("group"))...)
	errs = append(errs, rules.Immutable(r.Version, was.Version, field.NewPath("version"))...)
	return append(errs, rules.Immutable(r.Resource, was.Resource, field.NewPath("resource"))...)
}

// Is reports whether a condition of a migration is true.
func Is(m *storagemigrationv1alpha1.StorageVersionMigration, condition storagemigrationv1alpha1.MigrationConditionType) bool {
	for i := range m.Status.Conditions {
		if m.Status.Conditions[i].Type == condition {
			return m.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func validateMigrationStatus(m, old *storagemigrationv1alpha1.StorageVersionMigration) field.ErrorList {
	const (
		succeeded = storagemigrationv1alpha1.MigrationSucceeded
		failed    = storagemigrationv1alpha1.MigrationFailed
		running   = storagemigrationv1alpha1.MigrationRunning
	)
	version, conditions := field.NewPath("status", "resourceVersion"), field.NewPath("status", "conditions")
	rv, was := m.Status.ResourceVersion, old.Status.ResourceVersion
	errs := validateResourceVersion(rv, version)
	errs = append(errs, validateConditions(m.Status.Conditions, conditions)...)
	errs = rules.InvalidIf(errs, was != "" && rv != was, version, rv, "resourceVersion cannot be updated")
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{Is(m, succeeded) && Is(m, failed), "Both success and failed conditions cannot be true at the same time"},
		{Is(m, succeeded) && Is(m, running), "Running condition cannot be true when success condition is true"},
		{Is(m, failed) && Is(m, running), "Running condition cannot be true when failed condition is true"},
		{Is(old, succeeded) && !Is(m, succeeded), "Success condition cannot be set to false once it is true"},
		{Is(old, failed) && !Is(m, failed), "Failed condition cannot be set to false once it is true"},
	} {
		if rule.broken {
			errs = append(errs, field.Invalid(conditions, rules.Shown(m.Status.Conditions), rule.message))
		}
	}
	return errs
}

func validateResourceVersion(text string, p *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return field.ErrorList{field.Invalid(p, text, fmt.Sprintf("failed to parse resource version %q: %v", text, err))}
	}
	return rules.NotNegative(n, p)
}

func validateConditions(list []storagemigrationv1alpha1.MigrationCondition, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[storagemigrationv1alpha1.MigrationConditionType]bool, len(list))
	for i := range rules.Until(&errs, list) {
		c, at := &list[i], p.Index(i)
		errs = rules.DuplicateIf(errs, seen[c.Type], at.Child("type"), c.Type)
		seen[c.Type] = true
		errs = append(errs, metavalidation.ValidateLabelName(string(c.Type), at.Child("type"))...)
		errs = append(errs, rules.OneOf(c.Status, at.Child("status"), corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
		errs = rules.RequiredIf(errs, c.LastUpdateTime.IsZero(), at.Child("lastTransitionTime"), "must be set")
		errs = append(errs, validateReason(c.Reason, at.Child("reason"))...)
		if len(c.Message) > maxMessage {
			errs = append(errs, field.TooLong(at.Child("message"), "", maxMessage))
		}
	}
	return errs
}

const reasonFormat = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"

var reasonPattern = regexp.MustCompile("^" + reasonFormat + "$")

func validateReason(reason string, p *field.Path) field.ErrorList {
	if reason == "" {
		return field.ErrorList{field.Required(p, "must be set")}
	}
	var errs field.ErrorList
	if !reasonPattern.MatchString(reason) {
		const message = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
		errs = append(errs, field.Invalid(p, reason, validation.RegexError(message, reasonFormat, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")))
	}
	if len(reason) > maxReason {
		errs = append(errs, field.TooLong(p, "", maxReason))
	}
	return errs
}
