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

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

// deviceClass returns the rules for DeviceClasses.
func (b *validator) deviceClass() kinds.Strategy {
	return kinds.Typed[*resourceapi.DeviceClass]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.MetaRules{Updates: 1, Wholes: 1, LongName: b.later},
		Keep: func(c, old *resourceapi.DeviceClass) {
			if !b.extended && old.Spec.ExtendedResourceName == nil {
				c.Spec.ExtendedResourceName = nil
			}
		},
		Counted: func(c *resourceapi.DeviceClass) []any { return []any{c.Spec} },
		ValidateIn: func(ctx context.Context, c *resourceapi.DeviceClass) field.ErrorList {
			return b.checker(ctx).class(&c.Spec, nil)
		},
		// Before release 1.33 a stock server checks the class as a new one, and then as a change.
		ValidateUpdateIn: func(ctx context.Context, c, old *resourceapi.DeviceClass) field.ErrorList {
			check := b.checker(ctx)
			switch {
			case rules.Same(c.Spec, old.Spec):
				return nil
			case b.later:
				return check.class(&c.Spec, &old.Spec)
			}
			return append(check.class(&c.Spec, nil), check.class(&c.Spec, &old.Spec)...)
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
	}.Strategy()
}

// DeviceClassColumns is their Table form.
var DeviceClassColumns = columns.Of(func(c *resourcev1beta1.DeviceClass, now time.Time) []any {
	return []any{c.Name, columns.Since(c.CreationTimestamp, now)}
}, columns.Name(), columns.Age())

// class checks a class. The parts that it has from old, which is nil for a new one, are exempt from later
// rules.
func (c *checker) class(s, old *resourceapi.DeviceClassSpec) field.ErrorList {
	sameSelectors, sameConfig := false, false
	if old != nil {
		sameSelectors, sameConfig = rules.Same(s.Selectors, old.Selectors), rules.Same(s.Config, old.Config)
	}
	var errs field.ErrorList
	if !sameSelectors {
		errs = c.selectors(s.Selectors, specPath.Child("selectors"), false)
	}
	errs = append(errs, each(c.validator, s.Config, resourceapi.DeviceConfigMaxSize, specPath.Child("config"), func(v *resourceapi.DeviceClassConfiguration, p *field.Path) field.ErrorList {
		return c.configuration(&v.DeviceConfiguration, p, sameConfig)
	})...)
	if name := s.ExtendedResourceName; name != nil && !podspec.IsExtendedResource(corev1.ResourceName(*name)) {
		errs = append(errs, field.Invalid(specPath.Child("extendedResourceName"), *name, "must be a valid extended resource name"))
	}
	return errs
}
