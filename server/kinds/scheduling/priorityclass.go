// Package scheduling holds the strategy of PriorityClasses.
package scheduling

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	systemPrefix = "system-"
	highestUser  = int32(1_000_000_000) // the highest value that users may define
)

// SystemClasses returns the priority classes that are always there.
func SystemClasses() []*schedulingv1.PriorityClass {
	preempt := corev1.PreemptLowerPriority
	class := func(name string, value int32, description string) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
			Description: description, PreemptionPolicy: &preempt,
		}
	}
	return []*schedulingv1.PriorityClass{
		class("system-cluster-critical", 2*highestUser, "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."),
		class("system-node-critical", 2*highestUser+1000, "Used for system critical pods that must not be moved from their current node."),
	}
}

func systemClass(name string) *schedulingv1.PriorityClass {
	for _, c := range SystemClasses() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// PriorityClass has the rules for PriorityClasses.
var PriorityClass = kinds.Typed[*schedulingv1.PriorityClass]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Default: func(obj *schedulingv1.PriorityClass) {
		rules.DefaultTo(&obj.PreemptionPolicy, corev1.PreemptLowerPriority)
	},
	PrepareForCreate: func(c *schedulingv1.PriorityClass) { c.Generation = 1 },
	Validate:         validatePriorityClass,
	ValidateUpdate:   validatePriorityClassUpdate,
	Undeletable: func(name string) string {
		if systemClass(name) == nil {
			return ""
		}
		return "this is a system priority class and cannot be deleted"
	},
	UnconditionalUpdate: true,
}.Strategy()

// PriorityClassColumns is their Table form.
var PriorityClassColumns = columns.Of(
	func(c *schedulingv1.PriorityClass, now time.Time) []any {
		return []any{
			c.Name, int64(c.Value), c.GlobalDefault,
			columns.Since(c.CreationTimestamp, now), string(rules.Value(c.PreemptionPolicy)),
		}
	},
	columns.Name(),
	columns.Number("Value", schedulingv1.PriorityClass{}.SwaggerDoc()["value"]),
	columns.Flag("Global-Default", schedulingv1.PriorityClass{}.SwaggerDoc()["globalDefault"]),
	columns.Age(),
	columns.Text("PreemptionPolicy", schedulingv1.PriorityClass{}.SwaggerDoc()["preemptionPolicy"]),
)

func validatePriorityClass(c *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	switch {
	case strings.HasPrefix(c.Name, systemPrefix):
		if fault := systemFault(c); fault != "" {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with 'system-' prefix are reserved for system use only. error: "+fault))
		}
	case c.Value > highestUser:
		errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %d", highestUser)))
	}
	if p := c.PreemptionPolicy; p != nil {
		errs = append(errs, rules.RequiredOneOf(*p, field.NewPath("preemptionPolicy"), corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	return errs
}

func systemFault(c *schedulingv1.PriorityClass) string {
	known := systemClass(c.Name)
	switch {
	case known == nil:
		return c.Name + " is not a known system priority class"
	case known.Value != c.Value:
		return fmt.Sprintf("value of %v PriorityClass must be %v", c.Name, known.Value)
	case c.GlobalDefault:
		return fmt.Sprintf("globalDefault of %v PriorityClass must be %v", c.Name, known.GlobalDefault)
	default:
		return ""
	}
}

func validatePriorityClassUpdate(c, old *schedulingv1.PriorityClass) field.ErrorList {
	errs := rules.ForbiddenIf(nil, c.Value != old.Value, field.NewPath("value"), "may not be changed in an update.")
	return append(errs, rules.Immutable(c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
}
