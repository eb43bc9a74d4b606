package coordination

import (
	"time"

	"github.com/blang/semver/v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// LeaseCandidate has the rules for LeaseCandidates.
var LeaseCandidate = kinds.Typed[*coordinationv1beta1.LeaseCandidate]{
	// Candidates are called as holders call themselves, "host_uuid" for one.
	ValidateName: func(name string, _ bool) []string { return validation.IsConfigMapKey(name) },
	Meta:         &kinds.MetaRules{Updates: 1, AnyFinalizer: true},
	Validate: func(obj *coordinationv1beta1.LeaseCandidate) field.ErrorList {
		return validateCandidate(&obj.Spec)
	},
	ValidateUpdate: func(obj, old *coordinationv1beta1.LeaseCandidate) field.ErrorList {
		errs := validateCandidate(&obj.Spec)
		return append(errs, rules.Immutable(obj.Spec.LeaseName, old.Spec.LeaseName, field.NewPath("spec", "leaseName"))...)
	},
	CreateOnUpdate: true,
}.Strategy()

// leaseName is the description of the field in v1alpha2, which Tables of all versions show.
const leaseName = "LeaseName is the name of the lease for which this candidate is contending. This field is immutable."

// LeaseCandidateColumns is their Table form.
var LeaseCandidateColumns = columns.Of(
	func(c *coordinationv1beta1.LeaseCandidate, now time.Time) []any {
		return []any{c.Name, c.Spec.LeaseName, c.Spec.BinaryVersion, c.Spec.EmulationVersion, columns.Since(c.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("LeaseName", leaseName),
	columns.Text("BinaryVersion", ""),
	columns.Text("EmulationVersion", ""),
	columns.Age(),
)

func validateCandidate(s *coordinationv1beta1.LeaseCandidateSpec) field.ErrorList {
	p := field.NewPath("spec")
	errs := rules.RequiredIf(nil, s.LeaseName == "", p.Child("leaseName"), "")
	version := func(name, text string) (v semver.Version) {
		if text == "" {
			return v
		}
		var err error
		if v, err = semver.Parse(text); err != nil {
			errs = append(errs, field.Invalid(p.Child(name), text, "must be a valid semantic version"))
		}
		return v
	}
	emulated := version("emulationVersion", s.EmulationVersion)
	errs = rules.RequiredIf(errs, s.BinaryVersion == "", p.Child("binaryVersion"), "")
	binary := version("binaryVersion", s.BinaryVersion)
	errs = rules.InvalidIf(errs, s.BinaryVersion != "" && s.EmulationVersion != "" && binary.LT(emulated), p.Child("binaryVersion"), s.BinaryVersion, "must be greater than or equal to `emulationVersion`")
	if s.Strategy == "" {
		return append(errs, field.Required(p.Child("strategy"), ""))
	}
	errs = rules.RequiredIf(errs, s.Strategy == coordinationv1.OldestEmulationVersion && emulated.EQ(semver.Version{}), p.Child("emulationVersion"), "must be specified when `strategy` is 'OldestEmulationVersion'")
	return append(errs, validateStrategy(s.Strategy, p.Child("strategy"))...)
}
