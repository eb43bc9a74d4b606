package flowcontrol

import (
	"cmp"
	"fmt"
	"math"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const (
	maxQueues  = 10_000_000
	maxEntropy = 60 // bits of a hash that dealing a hand may use
)

// PriorityLevelConfiguration returns the strategy of PriorityLevelConfigurations.
func PriorityLevelConfiguration(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	return kinds.Typed[*flowcontrolv1.PriorityLevelConfiguration]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.AsNewMeta,
		Default:      defaultLevel,
		Counted:      func(l *flowcontrolv1.PriorityLevelConfiguration) []any { return []any{l.Spec} },
		Validate:     func(l *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList { return validateLevel(l, now) },
		ValidateUpdate: func(obj, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
			return validateLevel(obj, now)
		},
		UnconditionalUpdate: true,
		Status: &kinds.Status[*flowcontrolv1.PriorityLevelConfiguration]{
			KeepsMetadata: true,
			Validate: func(obj, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
				return validateLevelConditions(obj.Status.Conditions, now)
			},
			ResetFields: []string{"metadata"},
		},
	}.Strategy()
}

// PriorityLevelConfigurationColumns is their Table form.
var PriorityLevelConfigurationColumns = columns.Of(levelCells,
	columns.Name(),
	columns.Text("Type", flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"]),
	columns.Text("NominalConcurrencyShares", flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"]),
	columns.Text("Queues", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queues"]),
	columns.Text("HandSize", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["handSize"]),
	columns.Text("QueueLengthLimit", flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queueLengthLimit"]),
	columns.Age(),
)

func levelCells(l *flowcontrolv1.PriorityLevelConfiguration, now time.Time) []any {
	var shares, queues, hand, length any = "<none>", "<none>", "<none>", "<none>"
	if s := l.Spec.Limited; s != nil {
		shares = rules.Value(s.NominalConcurrencyShares)
		if q := s.LimitResponse.Queuing; q != nil {
			queues, hand, length = q.Queues, q.HandSize, q.QueueLengthLimit
		}
	}
	return []any{l.Name, string(l.Spec.Type), shares, queues, hand, length, columns.Since(l.CreationTimestamp, now)}
}

func defaultLevel(c *flowcontrolv1.PriorityLevelConfiguration) {
	s := &c.Spec
	if e := s.Exempt; e != nil {
		rules.DefaultTo(&e.NominalConcurrencyShares, 0)
		rules.DefaultTo(&e.LendablePercent, 0)
	}
	l := s.Limited
	if l == nil {
		return
	}
	rules.DefaultTo(&l.NominalConcurrencyShares, 30)
	rules.DefaultTo(&l.LendablePercent, 0)
	if q := l.LimitResponse.Queuing; q != nil {
		q.HandSize = cmp.Or(q.HandSize, 8)
		q.Queues = cmp.Or(q.Queues, 64)
		q.QueueLengthLimit = cmp.Or(q.QueueLengthLimit, 50)
	}
}

// now are the rules of releases after 1.32.
func validateLevel(l *flowcontrolv1.PriorityLevelConfiguration, now bool) field.ErrorList {
	p := field.NewPath("spec")
	errs := validateLevelSpec(l.Name, &l.Spec, p, now)
	for _, fixed := range MandatoryLevels() {
		if fixed.Name != l.Name {
			continue
		}
		// How much of its share the exempt level lends may be tuned, or left to the default.
		spec, but := l.Spec.DeepCopy(), ""
		if fixed.Spec.Exempt != nil {
			spec.Exempt, but = fixed.Spec.Exempt, " except the 'spec.exempt' field"
		}
		if !rules.Same(*spec, fixed.Spec) {
			errs = append(errs, field.Invalid(p, rules.Shown(l.Spec), fmt.Sprintf("spec of '%s'%s must equal the fixed value", l.Name, but)))
		}
	}
	return append(errs, validateLevelConditions(l.Status.Conditions, now)...)
}

func validateLevelConditions(list []flowcontrolv1.PriorityLevelConfigurationCondition, now bool) field.ErrorList {
	names := make([]string, len(list))
	for i := range list {
		names[i] = string(list[i].Type)
	}
	return validateConditionTypes(names, now)
}

func validateLevelSpec(name string, s *flowcontrolv1.PriorityLevelConfigurationSpec, p *field.Path, now bool) field.ErrorList {
	var errs field.ErrorList
	exempt := s.Type == flowcontrolv1.PriorityLevelEnablementExempt
	alone := "type must be 'Exempt' if and only if name is 'exempt'"
	if now {
		alone = "must be 'Exempt' if and only if `name` is 'exempt'"
	}
	errs = rules.InvalidIf(errs, (name == flowcontrolv1.PriorityLevelConfigurationNameExempt) != exempt, p.Child("type"), s.Type, alone)
	switch s.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		errs = rules.ForbiddenIf(errs, s.Limited != nil, p.Child("limited"), "must be nil if the type is not Limited")
		if s.Exempt != nil {
			errs = append(errs, validateShare(s.Exempt.NominalConcurrencyShares, p.Child("exempt", "nominalConcurrencyShares"))...)
			errs = append(errs, validateLending(s.Exempt.LendablePercent, p.Child("exempt", "lendablePercent"))...)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		errs = rules.ForbiddenIf(errs, s.Exempt != nil, p.Child("exempt"), "must be nil if the type is Limited")
		if s.Limited == nil {
			errs = append(errs, field.Required(p.Child("limited"), "must not be empty when type is Limited"))
		} else {
			errs = append(errs, validateLimited(s.Limited, p.Child("limited"))...)
		}
	default:
		errs = append(errs, field.NotSupported(p.Child("type"), s.Type,
			[]flowcontrolv1.PriorityLevelEnablement{flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited}))
	}
	return errs
}

func validateShare(v *int32, p *field.Path) field.ErrorList {
	if v == nil || *v >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(p, *v, "must be a non-negative integer")}
}

func validateLending(v *int32, p *field.Path) field.ErrorList {
	if v == nil || *v >= 0 && *v <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(p, *v, "must be between 0 and 100, inclusive")}
}

func validateLimited(l *flowcontrolv1.LimitedPriorityLevelConfiguration, p *field.Path) field.ErrorList {
	errs := validateShare(l.NominalConcurrencyShares, p.Child("nominalConcurrencyShares"))
	errs = append(errs, validateResponse(&l.LimitResponse, p.Child("limitResponse"))...)
	errs = append(errs, validateLending(l.LendablePercent, p.Child("lendablePercent"))...)
	if b := l.BorrowingLimitPercent; b != nil && *b < 0 {
		errs = append(errs, field.Invalid(p.Child("borrowingLimitPercent"), *b, "if specified, must be a non-negative integer"))
	}
	return errs
}

func validateResponse(r *flowcontrolv1.LimitResponse, p *field.Path) field.ErrorList {
	queuing := p.Child("queuing")
	switch r.Type {
	case flowcontrolv1.LimitResponseTypeReject:
		return rules.ForbiddenIf(nil, r.Queuing != nil, queuing, "must be nil if limited.limitResponse.type is not Limited")
	case flowcontrolv1.LimitResponseTypeQueue:
		if r.Queuing == nil {
			return field.ErrorList{field.Required(queuing, "must not be empty if limited.limitResponse.type is Limited")}
		}
		return validateQueuing(r.Queuing, queuing)
	default:
		return field.ErrorList{field.NotSupported(p.Child("type"), r.Type,
			[]flowcontrolv1.LimitResponseType{flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject})}
	}
}

func validateQueuing(q *flowcontrolv1.QueuingConfiguration, p *field.Path) field.ErrorList {
	const positive = "must be positive"
	errs := rules.InvalidIf(nil, q.QueueLengthLimit <= 0, p.Child("queueLengthLimit"), q.QueueLengthLimit, positive)
	switch queues := p.Child("queues"); {
	case q.Queues <= 0:
		errs = append(errs, field.Invalid(queues, q.Queues, positive))
	case q.Queues > maxQueues:
		errs = append(errs, field.Invalid(queues, q.Queues, fmt.Sprintf("must not be greater than %d", maxQueues)))
	}
	switch hand := p.Child("handSize"); {
	case q.HandSize <= 0:
		errs = append(errs, field.Invalid(hand, q.HandSize, positive))
	case q.HandSize > q.Queues:
		errs = append(errs, field.Invalid(hand, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues)))
	case entropy(q.Queues, q.HandSize) > maxEntropy:
		errs = append(errs, field.Invalid(hand, q.HandSize,
			fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, maxEntropy)))
	}
	return errs
}

// entropy returns how many bits of a hash are needed to deal hand cards from a deck.
func entropy(deck, hand int32) int {
	return int(math.Ceil(math.Log2(float64(deck)) * float64(hand)))
}
