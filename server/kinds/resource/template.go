package resource

import (
	"context"
	"time"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ResourceClaimTemplate is how ResourceClaimTemplates are written.
func ResourceClaimTemplate(on kinds.Feature) kinds.Strategy {
	adminAccess := on(adminAccessGate)
	return kinds.Typed[*resourcev1beta1.ResourceClaimTemplate]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Default:      func(t *resourcev1beta1.ResourceClaimTemplate) { defaultRequests(&t.Spec.Spec) },
		Keep: func(t, old *resourcev1beta1.ResourceClaimTemplate) {
			if !adminAccess && !asksForAdmin(&old.Spec.Spec) {
				dropAdminAccess(&t.Spec.Spec)
			}
		},
		ValidateIn: func(ctx context.Context, t *resourcev1beta1.ResourceClaimTemplate) field.ErrorList {
			return newChecker(ctx).template(t, false)
		},
		ValidateUpdateIn: func(ctx context.Context, t, old *resourcev1beta1.ResourceClaimTemplate) field.ErrorList {
			if rules.Same(t.Spec, old.Spec) {
				return nil // it was checked when it was made
			}
			check := newChecker(ctx)
			errs := append(check.template(t, false), rules.Immutable(t.Spec, old.Spec, specPath)...)
			return append(errs, check.template(t, true)...)
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
	}.Strategy()
}

// ResourceClaimTemplateColumns is their Table form.
var ResourceClaimTemplateColumns = columns.Of(func(t *resourcev1beta1.ResourceClaimTemplate, now time.Time) []any {
	return []any{t.Name, columns.Since(t.CreationTimestamp, now)}
}, columns.Name(), columns.Age())

func (c *checker) template(t *resourcev1beta1.ResourceClaimTemplate, stored bool) field.ErrorList {
	errs := podspec.ValidateTemplateMeta(&t.Spec.ObjectMeta, specPath.Child("metadata"))
	return append(errs, c.claim(&t.Spec.Spec.Devices, specPath.Child("spec", "devices"), stored)...)
}
