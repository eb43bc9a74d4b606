package resource

import (
	"time"

	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// taintRule returns the rules for DeviceTaintRules.
func taintRule() kinds.Strategy {
	return kinds.Typed[*resourcev1alpha3.DeviceTaintRule]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default: func(r *resourcev1alpha3.DeviceTaintRule) {
			if r.Spec.Taint.TimeAdded == nil {
				r.Spec.Taint.TimeAdded = now()
			}
		},
		// A taint whose effect changes is a new one.
		PrepareForUpdate: func(r, old *resourcev1alpha3.DeviceTaintRule) {
			taint, was := &r.Spec.Taint, &old.Spec.Taint
			if taint.Effect != was.Effect && taint.TimeAdded.Equal(was.TimeAdded) {
				taint.TimeAdded = now()
			}
		},
		Counted:  func(r *resourcev1alpha3.DeviceTaintRule) []any { return []any{r.Spec} },
		Validate: func(r *resourcev1alpha3.DeviceTaintRule) field.ErrorList { return validateTaintRule(r, "") },
		ValidateUpdate: func(r, old *resourcev1alpha3.DeviceTaintRule) field.ErrorList {
			return validateTaintRule(r, resourceapi.DeviceTaintEffect(old.Spec.Taint.Effect))
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		Status: &kinds.Status[*resourcev1alpha3.DeviceTaintRule]{
			Prepare: func(r, old *resourcev1alpha3.DeviceTaintRule) {
				metav1.ResetObjectMetaForStatus(&r.ObjectMeta, &old.ObjectMeta)
			},
			Validate: func(r, _ *resourcev1alpha3.DeviceTaintRule) field.ErrorList {
				p := statusPath.Child("conditions")
				errs := rules.Conditions(r.Status.Conditions, p)
				if n := len(r.Status.Conditions); n > resourcev1alpha3.DeviceTaintRuleStatusMaxConditions {
					errs = append(errs, field.TooMany(p, n, resourcev1alpha3.DeviceTaintRuleStatusMaxConditions))
				}
				return errs
			},
			ResetFields: []string{"metadata"},
		},
	}.Strategy()
}

// DeviceTaintRuleColumns is their Table form.
var DeviceTaintRuleColumns = columns.Of(func(r *resourcev1alpha3.DeviceTaintRule, now time.Time) []any {
	taint, added := &r.Spec.Taint, ""
	if taint.TimeAdded != nil {
		added = columns.Since(*taint.TimeAdded, now)
	}
	return []any{r.Name, taint.Key, taint.Value, string(taint.Effect), added, columns.Since(r.CreationTimestamp, now)}
},
	columns.Name(),
	columns.Text("Key", resourceapi.DeviceTaint{}.SwaggerDoc()["key"]),
	columns.Text("Value", resourceapi.DeviceTaint{}.SwaggerDoc()["value"]),
	columns.Text("Effect", resourceapi.DeviceTaint{}.SwaggerDoc()["effect"]),
	columns.Text("TimeAdded", resourceapi.DeviceTaint{}.SwaggerDoc()["timeAdded"]),
	columns.Age(),
)

// now has no more digits than an encoded time.
func now() *metav1.Time { return &metav1.Time{Time: time.Now().Truncate(time.Second)} }

func defaultTaint(t *resourceapi.DeviceTaint) {
	if t.TimeAdded == nil {
		t.TimeAdded = now()
	}
}

// validateTaintRule checks a rule. was is the effect of the old one, "" for a new one.
func validateTaintRule(r *resourcev1alpha3.DeviceTaintRule, was resourceapi.DeviceTaintEffect) field.ErrorList {
	var errs field.ErrorList
	if s, p := r.Spec.DeviceSelector, specPath.Child("deviceSelector"); s != nil {
		errs = append(errs, rules.Optional(s.Driver, p.Child("driver"), rules.DriverNameSince133)...)
		errs = append(errs, rules.Optional(s.Pool, p.Child("pool"), poolName)...)
		errs = append(errs, rules.Optional(s.Device, p.Child("device"), rules.Label)...)
	}
	taint := kinds.ConvertValue[resourceapi.DeviceTaint](r.Spec.Taint)
	return append(errs, validateTaint(&taint, was, specPath.Child("taint"))...)
}

// effects returns the effects of taints, in the order of errors.
func effects() []resourceapi.DeviceTaintEffect {
	return []resourceapi.DeviceTaintEffect{resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNone}
}

// validateTaint checks a taint whose effect was another one, or "".
func validateTaint(t *resourceapi.DeviceTaint, was resourceapi.DeviceTaintEffect, p *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabelName(t.Key, p.Child("key"))
	errs = append(errs, labelValue(t.Value, p.Child("value"))...)
	switch {
	case was != "" && was == t.Effect:
	case t.Effect == "":
		errs = append(errs, field.Required(p.Child("effect"), ""))
	default:
		errs = append(errs, rules.OneOf(t.Effect, p.Child("effect"), effects()...)...)
	}
	return errs
}

func validateToleration(t *resourceapi.DeviceToleration, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = metavalidation.ValidateLabelName(t.Key, p.Child("key"))
	}
	switch t.Operator {
	case resourceapi.DeviceTolerationOpExists:
		errs = rules.InvalidIf(errs, t.Value != "", p.Child("value"), t.Value, "must be empty for operator `Exists`")
	case resourceapi.DeviceTolerationOpEqual:
		errs = append(errs, labelValue(t.Value, p.Child("value"))...)
	case "":
		errs = append(errs, field.Required(p.Child("operator"), ""))
	default:
		errs = append(errs, field.NotSupported(p.Child("operator"), t.Operator, []resourceapi.DeviceTolerationOperator{resourceapi.DeviceTolerationOpEqual, resourceapi.DeviceTolerationOpExists}))
	}
	if t.Effect != "" {
		errs = append(errs, rules.OneOf(t.Effect, p.Child("effect"), effects()...)...)
	}
	return errs
}

func labelValue(v string, p *field.Path) field.ErrorList {
	return rules.Messages(p, v, validation.IsValidLabelValue(v))
}
