package resource

import (
	"context"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// resourceClaimTemplate returns the rules for ResourceClaimTemplates.
func (b *validator) resourceClaimTemplate() kinds.Strategy {
	s := kinds.Typed[*resourceapi.ResourceClaimTemplate]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Default:      func(t *resourceapi.ResourceClaimTemplate) { b.defaultRequests(&t.Spec.Spec) },
		Keep: func(t, old *resourceapi.ResourceClaimTemplate) {
			dropOff(b.fieldsOfRequests(), &t.Spec.Spec, &old.Spec.Spec)
		},
		ValidateIn: func(ctx context.Context, t *resourceapi.ResourceClaimTemplate) field.ErrorList {
			return b.checker(ctx).template(t, false)
		},
		ValidateUpdateIn: func(ctx context.Context, t, old *resourceapi.ResourceClaimTemplate) field.ErrorList {
			check := b.checker(ctx)
			if rules.Same(t.Spec, old.Spec) { // it was checked when it was made, but for lists that are empty and not absent
				return podspec.ValidateTemplateMeta(&t.Spec.ObjectMeta, specPath.Child("metadata"))
			}
			if b.later {
				return append(check.template(t, false), rules.Immutable(t.Spec, old.Spec, specPath)...)
			}
			return b.immutable(t.Spec, old.Spec, resourcev1beta1.ResourceClaimTemplateSpec{}, func(stored bool) field.ErrorList { return check.template(t, stored) })
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
	}.Strategy()
	if b.later {
		s.NeedsLabel = func(obj, old kinds.Object) (p *field.Path, label, detail string) {
			if old == nil {
				p = adminRequest(&obj.(*resourceapi.ResourceClaimTemplate).Spec.Spec)
			}
			return p, resourceapi.DRAAdminNamespaceLabelKey, adminDetail
		}
	}
	return s
}

// ResourceClaimTemplateColumns is their Table form.
var ResourceClaimTemplateColumns = columns.Of(func(t *resourcev1beta1.ResourceClaimTemplate, now time.Time) []any {
	return []any{t.Name, columns.Since(t.CreationTimestamp, now)}
}, columns.Name(), columns.Age())

func (c *checker) template(t *resourceapi.ResourceClaimTemplate, stored bool) field.ErrorList {
	errs := podspec.ValidateTemplateMeta(&t.Spec.ObjectMeta, specPath.Child("metadata"))
	return append(errs, c.claim(&t.Spec.Spec.Devices, specPath.Child("spec", "devices"), stored)...)
}
