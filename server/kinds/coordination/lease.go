// Package coordination says how Leases behave.
package coordination

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Lease is how Leases are written.
var Lease = kinds.Typed[*coordinationv1.Lease]{
	ValidateName:     apivalidation.NameIsDNSSubdomain,
	Meta:             &kinds.MetaRules{Updates: 1, AnyFinalizer: true},
	PrepareForCreate: func(obj *coordinationv1.Lease) { dropElection(obj, nil) },
	PrepareForUpdate: func(obj, old *coordinationv1.Lease) {
		dropElection(obj, old)
	},
	Validate: func(obj *coordinationv1.Lease) field.ErrorList {
		return validateLease(&obj.Spec)
	},
	ValidateUpdate: func(obj, _ *coordinationv1.Lease) field.ErrorList {
		return validateLease(&obj.Spec)
	},
	CreateOnUpdate: true,
}.Strategy()

// LeaseColumns is their Table form.
var LeaseColumns = columns.Of(
	func(l *coordinationv1.Lease, now time.Time) []any {
		return []any{l.Name, rules.Value(l.Spec.HolderIdentity), columns.Since(l.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("Holder", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]),
	columns.Age(),
)

// dropElection removes the fields of coordinated elections, whose gate is off,
// where the old Lease does not use them.
func dropElection(l, old *coordinationv1.Lease) {
	if old != nil && (old.Spec.Strategy != nil || old.Spec.PreferredHolder != nil) {
		return
	}
	l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil
}

func validateLease(s *coordinationv1.LeaseSpec) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if d := s.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(p.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	return append(errs, rules.NotNegativePtr(s.LeaseTransitions, p.Child("leaseTransitions"))...)
}
