// Package apiextensions holds the strategy of CustomResourceDefinitions: their defaults, their validation,
// and which fields may change.
//
// The server, package structural included, can serve every valid definition; errors have the paths and texts
// of release 1.32; an update may keep parts of the old definition that violate later rules. Validation
// estimates the cost of rules before they ever run, and compiling them ends with the request.
package apiextensions

import (
	"cmp"
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// CustomResourceDefinition returns the strategy of CustomResourceDefinitions.
func CustomResourceDefinition(of release.Version) kinds.Strategy {
	typed := typed // a copy
	typed.ValidateIn = func(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
		return validateDefinition(ctx, of, d)
	}
	typed.ValidateUpdateIn = func(ctx context.Context, d, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
		return validateDefinitionUpdate(ctx, of, d, old)
	}
	if of.Has(release.CustomResources133) {
		status := *typed.Status
		typed.Status, status.ResetFields = &status, nil
		typed.Warnings = func(d, old *apiextensionsv1.CustomResourceDefinition) []string { return unknownFormats(of, d, old) }
	}
	return typed.Strategy()
}

// typed is the common part of all releases.
var typed = kinds.Typed[*apiextensionsv1.CustomResourceDefinition]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &kinds.MetaRules{Updates: 1, AnyFinalizer: true, Own: true},
	Default:      defaultDefinition,
	PrepareForCreate: func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Generation = 1
		storeVersion(d)
	},
	PrepareForUpdate: func(d, old *apiextensionsv1.CustomResourceDefinition) {
		d.Status = *old.Status.DeepCopy()
		d.Generation = old.Generation
		if !rules.Same(d.Spec, old.Spec) {
			d.Generation++
		}
		storeVersion(d)
	},
	Terminate: terminate,
	// As on a stock server, writes of the status change the metadata too. In release 1.32 their manager does not own it.
	Status: &kinds.Status[*apiextensionsv1.CustomResourceDefinition]{
		Meta: &kinds.MetaRules{Updates: 1, AnyFinalizer: true},
		Validate: func(d, _ *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
			return validateDefinitionStatus(d)
		},
		ResetFields: []string{"metadata"},
	},
}

func defaultDefinition(d *apiextensionsv1.CustomResourceDefinition) {
	s := &d.Spec
	s.Names.Singular = cmp.Or(s.Names.Singular, strings.ToLower(s.Names.Kind))
	if s.Names.ListKind == "" && s.Names.Kind != "" {
		s.Names.ListKind = s.Names.Kind + "List"
	}
	rules.DefaultTo(&s.Conversion, apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	if w := s.Conversion.Webhook; w != nil && w.ClientConfig != nil && w.ClientConfig.Service != nil {
		rules.DefaultTo(&w.ClientConfig.Service.Port, 443)
	}
	if len(d.Status.StoredVersions) == 0 {
		storeVersion(d)
	}
	normalize(d)
}

// storeVersion adds the version that objects are stored in to those that exist
// in the store.
func storeVersion(d *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range d.Spec.Versions {
		if !v.Storage {
			continue
		}
		for _, stored := range d.Status.StoredVersions {
			if stored == v.Name {
				return
			}
		}
		d.Status.StoredVersions = append(d.Status.StoredVersions, v.Name)
		return
	}
}
