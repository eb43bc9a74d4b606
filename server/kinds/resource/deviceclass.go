// Package resource holds the strategies of dynamic resource allocation: DeviceClass,
// ResourceClaim, ResourceClaimTemplate and ResourceSlice.
//
// Clients that may write these kinds make the server compile the expressions in them; nothing
// evaluates them here. An object may have 256 KiB of expressions, which take two seconds to compile,
// and 10 KiB in each. The server compiles equal expressions of an object once and unchanged ones not
// again, and stops when the request ends.
package resource

import (
	"context"
	"time"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

// DeviceClass is how DeviceClasses are written.
var DeviceClass = kinds.Typed[*resourcev1beta1.DeviceClass]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &kinds.WholeMeta,
	Counted:      func(c *resourcev1beta1.DeviceClass) []any { return []any{c.Spec} },
	ValidateIn: func(ctx context.Context, c *resourcev1beta1.DeviceClass) field.ErrorList {
		return newChecker(ctx).class(&c.Spec, nil)
	},
	// A stock server checks the class as a new one, and then as a change.
	ValidateUpdateIn: func(ctx context.Context, c, old *resourcev1beta1.DeviceClass) field.ErrorList {
		check := newChecker(ctx)
		if rules.Same(c.Spec, old.Spec) {
			return nil
		}
		return append(check.class(&c.Spec, nil), check.class(&c.Spec, &old.Spec)...)
	},
	UnconditionalUpdate: true,
	ReturnDeletedObject: true,
}.Strategy()

// DeviceClassColumns is their Table form.
var DeviceClassColumns = columns.Of(func(c *resourcev1beta1.DeviceClass, now time.Time) []any {
	return []any{c.Name, columns.Since(c.CreationTimestamp, now)}
}, columns.Name(), columns.Age())

// class checks a class. What it has from old, which is nil for a new one, is not held to
// rules that came later.
func (c *checker) class(s, old *resourcev1beta1.DeviceClassSpec) field.ErrorList {
	sameSelectors, sameConfig := false, false
	if old != nil {
		sameSelectors, sameConfig = rules.Same(s.Selectors, old.Selectors), rules.Same(s.Config, old.Config)
	}
	var errs field.ErrorList
	if !sameSelectors {
		errs = c.selectors(s.Selectors, specPath.Child("selectors"), false)
	}
	return append(errs, each(s.Config, resourcev1beta1.DeviceConfigMaxSize, specPath.Child("config"), func(v *resourcev1beta1.DeviceClassConfiguration, p *field.Path) field.ErrorList {
		return configuration(&v.DeviceConfiguration, p, sameConfig)
	})...)
}
