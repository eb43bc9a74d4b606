// Package apiextensions holds the strategy of CustomResourceDefinitions: their defaults, their
// validation, and which fields may change.
//
// It promises: the server can serve every definition that passes, package structural included; errors have
// the paths and texts of release 1.32; an update may keep what the old definition had before a rule
// existed. Validation estimates the cost of rules before they ever run, and compiling them ends with
// the request.
package apiextensions

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// CustomResourceDefinition is how CustomResourceDefinitions are written.
var CustomResourceDefinition = kinds.Typed[*apiextensionsv1.CustomResourceDefinition]{
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
	ValidateIn:       validateDefinition,
	ValidateUpdateIn: validateDefinitionUpdate,
	Terminate:        terminate,
	// As on a stock server, writes of the status change the metadata too, and their manager does not own it.
	Status: &kinds.Status[*apiextensionsv1.CustomResourceDefinition]{
		Meta: &kinds.MetaRules{Updates: 1, AnyFinalizer: true},
		Validate: func(d, _ *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
			return validateDefinitionStatus(d)
		},
		ResetFields: []string{"metadata"},
	},
}.Strategy()

func defaultDefinition(d *apiextensionsv1.CustomResourceDefinition) {
	s := &d.Spec
	if s.Names.Singular == "" {
		s.Names.Singular = strings.ToLower(s.Names.Kind)
	}
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
