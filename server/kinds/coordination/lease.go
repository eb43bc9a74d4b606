// Package coordination holds the strategies of Leases and LeaseCandidates.
package coordination

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Lease returns the strategy of Leases.
func Lease(on kinds.Feature) kinds.Strategy {
	elections := on("CoordinatedLeaderElection")
	return kinds.Typed[*coordinationv1.Lease]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.MetaRules{Updates: 1, AnyFinalizer: true},
		Keep: func(obj, old *coordinationv1.Lease) {
			if !elections {
				dropElection(obj, old)
			}
		},
		Validate:       validateLease,
		ValidateUpdate: func(obj, _ *coordinationv1.Lease) field.ErrorList { return validateLease(obj) },
		CreateOnUpdate: true,
	}.Strategy()
}

// LeaseColumns is their Table form.
var LeaseColumns = columns.Of(
	func(l *coordinationv1.Lease, now time.Time) []any {
		return []any{l.Name, rules.Value(l.Spec.HolderIdentity), columns.Since(l.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("Holder", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]),
	columns.Age(),
)

// dropElection removes the fields of coordinated elections that the old Lease does not have.
func dropElection(l, old *coordinationv1.Lease) {
	if old.Spec.Strategy == nil {
		l.Spec.Strategy = nil
	}
	if old.Spec.PreferredHolder == nil {
		l.Spec.PreferredHolder = nil
	}
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	s, p := &l.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if d := s.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(p.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	errs = append(errs, rules.NotNegativePtr(s.LeaseTransitions, p.Child("leaseTransitions"))...)
	errs = append(errs, rules.Optional(s.Strategy, p.Child("strategy"), validateStrategy)...)
	return rules.ForbiddenIf(errs, rules.Value(s.Strategy) == "" && rules.Value(s.PreferredHolder) != "", p.Child("preferredHolder"), "may only be specified if `strategy` is defined")
}

// validateStrategy allows the known strategy, and names with a domain for others. The path is that of a stock
// server.
func validateStrategy(s coordinationv1.CoordinatedLeaseStrategy, p *field.Path) field.ErrorList {
	p = p.Child("strategy")
	if strings.Contains(string(s), "/") {
		return rules.QualifiedName(string(s), p)
	}
	return rules.OneOf(s, p, coordinationv1.OldestEmulationVersion)
}
