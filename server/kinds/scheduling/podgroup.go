package scheduling

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	schedulingv1alpha2 "github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

// groups are the rules of groups of Pods, which depend on the gates of their fields.
type groups struct{ topology, claims, preemption bool }

func groupsOf(on kinds.Feature) groups {
	return groups{on("TopologyAwareWorkloadScheduling"), on("DRAWorkloadResourceClaims"), on("WorkloadAwarePreemption")}
}

// group is the common part of PodGroups and their templates in Workloads.
type group = schedulingv1alpha2.PodGroupSpec

func ofTemplate(t *schedulingv1alpha2.PodGroupTemplate) *group {
	return new(kinds.ConvertValue[group](*t))
}

// drop removes fields whose gates are off, unless the old group has them.
func (g groups) drop(s, old *group) {
	if !g.topology && old.SchedulingConstraints == nil {
		s.SchedulingConstraints = nil
	}
	if !g.claims && len(old.ResourceClaims) == 0 {
		s.ResourceClaims = nil
	}
	if g.preemption {
		return
	}
	if old.DisruptionMode == nil {
		s.DisruptionMode = nil
	}
	if old.PriorityClassName == "" {
		s.PriorityClassName = ""
	}
	if old.Priority == nil {
		s.Priority = nil
	}
}

// Workload returns the strategy of Workloads.
func Workload(on kinds.Feature) kinds.Strategy {
	g := groupsOf(on)
	return kinds.Typed[*schedulingv1alpha2.Workload]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Keep: func(w, old *schedulingv1alpha2.Workload) {
			for i := range w.Spec.PodGroupTemplates {
				t, was := &w.Spec.PodGroupTemplates[i], &schedulingv1alpha2.PodGroupTemplate{}
				if i < len(old.Spec.PodGroupTemplates) {
					was = &old.Spec.PodGroupTemplates[i]
				}
				s := ofTemplate(t)
				g.drop(s, ofTemplate(was))
				t.SchedulingConstraints, t.ResourceClaims, t.DisruptionMode, t.PriorityClassName, t.Priority = s.SchedulingConstraints, s.ResourceClaims, s.DisruptionMode, s.PriorityClassName, s.Priority
			}
		},
		Validate: func(w *schedulingv1alpha2.Workload) field.ErrorList {
			errs := rules.OptionalPtr(w.Spec.ControllerRef, specPath.Child("controllerRef"), validateController)
			return append(errs, g.templates(w.Spec.PodGroupTemplates, specPath.Child("podGroupTemplates"))...)
		},
		ValidateUpdate: func(w, old *schedulingv1alpha2.Workload) field.ErrorList {
			errs := fixed(w.Spec.ControllerRef, old.Spec.ControllerRef, specPath.Child("controllerRef"))
			p := specPath.Child("podGroupTemplates")
			if templates := w.Spec.PodGroupTemplates; !rules.Same(templates, old.Spec.PodGroupTemplates) {
				errs = append(errs, fixed(templates, old.Spec.PodGroupTemplates, p)...)
				errs = append(errs, sized(len(templates), schedulingv1alpha2.WorkloadMaxPodGroupTemplates, p)...)
				errs = rules.RequiredIf(errs, len(templates) == 0, p, "")
			}
			return errs
		},
		UnconditionalUpdate: true,
	}.Strategy()
}

// WorkloadColumns is their Table form.
var WorkloadColumns = columns.Of(func(w *schedulingv1alpha2.Workload, now time.Time) []any {
	return []any{w.Name, columns.Since(w.CreationTimestamp, now)}
}, columns.Name(), columns.Age())

// PodGroup returns the strategy of PodGroups.
func PodGroup(on kinds.Feature) kinds.Strategy {
	g := groupsOf(on)
	return kinds.Typed[*schedulingv1alpha2.PodGroup]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default: func(p *schedulingv1alpha2.PodGroup) {
			rules.DefaultTo(&p.Spec.DisruptionMode, schedulingv1alpha2.DisruptionModePod)
		},
		Keep: func(p, old *schedulingv1alpha2.PodGroup) { g.drop(&p.Spec, &old.Spec) },
		Validate: func(p *schedulingv1alpha2.PodGroup) field.ErrorList {
			errs := rules.OptionalPtr(p.Spec.PodGroupTemplateRef, specPath.Child("podGroupTemplateRef"), validateTemplateRef)
			errs = append(errs, g.group(&p.Spec, specPath)...)
			return rules.RequiredIf(errs, g.preemption && p.Spec.DisruptionMode == nil, specPath.Child("disruptionMode"), "")
		},
		ValidateUpdate:      func(p, old *schedulingv1alpha2.PodGroup) field.ErrorList { return g.change(&p.Spec, &old.Spec) },
		UnconditionalUpdate: true,
		Status: &kinds.Status[*schedulingv1alpha2.PodGroup]{
			Prepare: func(p, old *schedulingv1alpha2.PodGroup) {
				metav1.ResetObjectMetaForStatus(&p.ObjectMeta, &old.ObjectMeta)
				if !g.claims && len(old.Spec.ResourceClaims) == 0 {
					p.Status.ResourceClaimStatuses = nil
				}
			},
			Validate:    validatePodGroupStatus,
			ResetFields: []string{"metadata"},
		},
	}.Strategy()
}

// PodGroupColumns is their Table form.
var PodGroupColumns = columns.Of(func(p *schedulingv1alpha2.PodGroup, now time.Time) []any {
	policy, workload, state, disrupted := "Basic", "<none>", "Pending", ""
	if p.Spec.SchedulingPolicy.Gang != nil {
		policy = "Gang"
	}
	if ref := p.Spec.PodGroupTemplateRef; ref != nil && ref.Workload != nil {
		workload = ref.Workload.WorkloadName
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == schedulingv1alpha2.DisruptionTarget:
			disrupted = c.Reason
		case c.Type != schedulingv1alpha2.PodGroupScheduled:
		case c.Status == metav1.ConditionTrue:
			state = "Scheduled"
		default:
			state = "Unschedulable"
		}
	}
	if disrupted != "" {
		state = disrupted
	}
	return []any{p.Name, policy, workload, state, columns.Since(p.CreationTimestamp, now)}
},
	columns.Name(),
	columns.Text("Policy", schedulingv1alpha2.PodGroupSpec{}.SwaggerDoc()["schedulingPolicy"]),
	columns.Text("Workload", "Name of the referenced Workload object"),
	columns.Text("Status", "Status of the PodGroup"),
	columns.Age(),
)

// fixed refuses another value of a field; the error does not show it.
func fixed(value, old any, p *field.Path) field.ErrorList {
	return rules.InvalidIf[any](nil, !rules.Same(value, old), p, nil, apivalidation.FieldImmutableErrorMsg)
}

func sized(n, most int, p *field.Path) field.ErrorList {
	if n <= most {
		return nil
	}
	return field.ErrorList{field.TooMany(p, n, most)}
}

// named checks a name that is required.
func named(name string, p *field.Path, check func(string, *field.Path) field.ErrorList) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	return check(name, p)
}

// longName and shortName are formats of declarative validation, which counts bytes.
func longName(name string, p *field.Path) field.ErrorList {
	return rules.Messages(p, name, content.IsDNS1123Subdomain(name))
}

func shortName(name string, p *field.Path) field.ErrorList {
	return rules.Messages(p, name, content.IsDNS1123Label(name))
}

func segment(name string, p *field.Path) field.ErrorList {
	return rules.Messages(p, name, path.IsValidPathSegmentName(name))
}

func validateController(r *schedulingv1alpha2.TypedLocalObjectReference, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.APIGroup != "" {
		errs = longName(r.APIGroup, p.Child("apiGroup"))
	}
	errs = append(errs, named(r.Kind, p.Child("kind"), segment)...)
	return append(errs, named(r.Name, p.Child("name"), segment)...)
}

func validateTemplateRef(r *schedulingv1alpha2.PodGroupTemplateReference, p *field.Path) field.ErrorList {
	if r.Workload == nil {
		return field.ErrorList{field.Invalid(p, "", "must specify one of: `workload`")}
	}
	p = p.Child("workload")
	return append(named(r.Workload.WorkloadName, p.Child("workloadName"), longName),
		named(r.Workload.PodGroupTemplateName, p.Child("podGroupTemplateName"), shortName)...)
}

// templates checks the templates of a Workload.
func (g groups) templates(list []schedulingv1alpha2.PodGroupTemplate, p *field.Path) field.ErrorList {
	const most = schedulingv1alpha2.WorkloadMaxPodGroupTemplates
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(p, "")}
	case len(list) > most:
		return sized(len(list), most, p)
	}
	errs := repeated(list, func(t *schedulingv1alpha2.PodGroupTemplate) string { return t.Name }, p)
	return append(errs, rules.EachPtr(list, p, func(t *schedulingv1alpha2.PodGroupTemplate, p *field.Path) field.ErrorList {
		errs := named(t.Name, p.Child("name"), shortName)
		return append(errs, g.group(ofTemplate(t), p)...)
	})...)
}

// repeated finds items with the name of an earlier one.
func repeated[T any](list []T, name func(*T) string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := rules.Seen[string]{}
	for i := range rules.Until(&errs, list) {
		errs = rules.DuplicateIf(errs, seen.Again(name(&list[i])), p.Index(i), list[i])
	}
	return errs
}

// group checks a new group or template.
func (g groups) group(s *group, p *field.Path) field.ErrorList {
	errs := validatePolicy(&s.SchedulingPolicy, p.Child("schedulingPolicy"))
	errs = append(errs, rules.OptionalPtr(s.SchedulingConstraints, p.Child("schedulingConstraints"), validateTopology)...)
	claims := p.Child("resourceClaims")
	if long := sized(len(s.ResourceClaims), schedulingv1alpha2.MaxPodGroupResourceClaims, claims); len(long) > 0 {
		errs = append(errs, long...)
	} else {
		errs = append(errs, repeated(s.ResourceClaims, func(c *schedulingv1alpha2.PodGroupResourceClaim) string { return c.Name }, claims)...)
		errs = append(errs, rules.EachPtr(s.ResourceClaims, claims, validateClaim)...)
	}
	if s.DisruptionMode != nil && g.preemption {
		errs = append(errs, rules.OneOf(*s.DisruptionMode, p.Child("disruptionMode"), schedulingv1alpha2.DisruptionModePod, schedulingv1alpha2.DisruptionModePodGroup)...)
	}
	if s.PriorityClassName != "" {
		errs = append(errs, longName(s.PriorityClassName, p.Child("priorityClassName"))...)
	}
	if n := s.Priority; n != nil {
		errs = rules.InvalidIf(errs, *n > highestUser, p.Child("priority"), *n, fmt.Sprintf("must be less than or equal to %d", highestUser))
	}
	return errs
}

// change checks an update of a PodGroup, which must not change anything; fields whose gate is off may not
// even be set to another value.
func (g groups) change(s, old *group) field.ErrorList {
	errs := fixed(s.PodGroupTemplateRef, old.PodGroupTemplateRef, specPath.Child("podGroupTemplateRef"))
	errs = append(errs, fixed(s.SchedulingPolicy, old.SchedulingPolicy, specPath.Child("schedulingPolicy"))...)
	claims := specPath.Child("resourceClaims")
	gated := func(on bool, value, was any, p *field.Path) field.ErrorList {
		if on || rules.Same(value, was) {
			return fixed(value, was, p)
		}
		return field.ErrorList{field.Forbidden(p, "")}
	}
	errs = append(errs, gated(g.topology, s.SchedulingConstraints, old.SchedulingConstraints, specPath.Child("schedulingConstraints"))...)
	if !rules.Same(s.ResourceClaims, old.ResourceClaims) {
		errs = append(errs, fixed(s.ResourceClaims, old.ResourceClaims, claims)...)
		errs = append(errs, sized(len(s.ResourceClaims), schedulingv1alpha2.MaxPodGroupResourceClaims, claims)...)
	}
	errs = append(errs, gated(g.preemption, s.DisruptionMode, old.DisruptionMode, specPath.Child("disruptionMode"))...)
	errs = append(errs, gated(g.preemption, s.PriorityClassName, old.PriorityClassName, specPath.Child("priorityClassName"))...)
	return append(errs, gated(g.preemption, s.Priority, old.Priority, specPath.Child("priority"))...)
}

// one checks that one of two fields is set.
func one(p *field.Path, first, second string, hasFirst, hasSecond bool) field.ErrorList {
	both := fmt.Sprintf("`%s`, `%s`", first, second)
	switch {
	case hasFirst && hasSecond:
		return field.ErrorList{field.Invalid(p, fmt.Sprintf("{%s, %s}", first, second), "must specify exactly one of: "+both)}
	case !hasFirst && !hasSecond:
		return field.ErrorList{field.Invalid(p, "", "must specify one of: "+both)}
	}
	return nil
}

func validatePolicy(s *schedulingv1alpha2.PodGroupSchedulingPolicy, p *field.Path) field.ErrorList {
	errs := one(p, "basic", "gang", s.Basic != nil, s.Gang != nil)
	if s.Gang == nil {
		return errs
	}
	n, at := s.Gang.MinCount, p.Child("gang", "minCount")
	errs = rules.RequiredIf(errs, n == 0, at, "")
	return rules.InvalidIf(errs, n < 0, at, n, "must be greater than or equal to 1")
}

func validateTopology(s *schedulingv1alpha2.PodGroupSchedulingConstraints, p *field.Path) field.ErrorList {
	p = p.Child("topology")
	if long := sized(len(s.Topology), 1, p); len(long) > 0 {
		return long
	}
	return rules.EachPtr(s.Topology, p, func(t *schedulingv1alpha2.TopologyConstraint, p *field.Path) field.ErrorList {
		return named(t.Key, p.Child("key"), metavalidation.ValidateLabelName)
	})
}

func validateClaim(c *schedulingv1alpha2.PodGroupResourceClaim, p *field.Path) field.ErrorList {
	errs := one(p, "resourceClaimName", "resourceClaimTemplateName", c.ResourceClaimName != nil, c.ResourceClaimTemplateName != nil)
	errs = append(errs, named(c.Name, p.Child("name"), shortName)...)
	errs = append(errs, rules.Optional(c.ResourceClaimName, p.Child("resourceClaimName"), longName)...)
	return append(errs, rules.Optional(c.ResourceClaimTemplateName, p.Child("resourceClaimTemplateName"), longName)...)
}

func validatePodGroupStatus(g, old *schedulingv1alpha2.PodGroup) field.ErrorList {
	errs := rules.Conditions(g.Status.Conditions, statusPath.Child("conditions"))
	list, p := g.Status.ResourceClaimStatuses, statusPath.Child("resourceClaimStatuses")
	for i := range rules.Until(&errs, list) {
		known := slices.ContainsFunc(g.Spec.ResourceClaims, func(c schedulingv1alpha2.PodGroupResourceClaim) bool { return c.Name == list[i].Name })
		errs = rules.InvalidIf(errs, !known, p.Index(i).Child("name"), list[i].Name, "must match the name of an entry in `spec.resourceClaims`")
	}
	if rules.Same(list, old.Status.ResourceClaimStatuses) {
		return errs
	}
	if long := sized(len(list), schedulingv1alpha2.MaxPodGroupResourceClaims, p); len(long) > 0 {
		return append(errs, long...)
	}
	errs = append(errs, repeated(list, func(c *schedulingv1alpha2.PodGroupResourceClaimStatus) string { return c.Name }, p)...)
	return append(errs, rules.EachPtr(list, p, func(c *schedulingv1alpha2.PodGroupResourceClaimStatus, p *field.Path) field.ErrorList {
		return rules.Optional(c.ResourceClaimName, p.Child("resourceClaimName"), longName)
	})...)
}
