// Package apiregistration holds the strategy of APIServices.
package apiregistration

import (
	"fmt"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	maxGroupPriority   = 20000
	maxVersionPriority = 1000
	defaultPort        = int32(443)
)

// APIService has the rules for APIServices.
var APIService = kinds.Typed[*apiregistrationv1.APIService]{
	ValidateName: path.ValidatePathSegmentName,
	Meta:         &kinds.MetaRules{AnyFinalizer: true, Own: true},
	Default:      defaultAPIService,
	PrepareForCreate: func(s *apiregistrationv1.APIService) {
		if s.Spec.Service == nil {
			s.Status.Conditions = []apiregistrationv1.APIServiceCondition{LocalCondition(metav1.Now())}
		}
	},
	Validate: validateAPIService,
	ValidateUpdate: func(obj, old *apiregistrationv1.APIService) field.ErrorList {
		return append(apivalidation.ValidateObjectMetaAccessorUpdate(rules.Metadata(obj), old, field.NewPath("metadata")), validateAPIService(obj)...)
	},
	Status: &kinds.Status[*apiregistrationv1.APIService]{
		Meta: &kinds.MetaRules{Updates: 1, AnyFinalizer: true},
		Prepare: func(s, old *apiregistrationv1.APIService) {
			s.Labels = old.Labels
			s.Annotations = old.Annotations
			s.Finalizers = old.Finalizers
			s.OwnerReferences = old.OwnerReferences
		},
		Validate: func(obj, _ *apiregistrationv1.APIService) field.ErrorList {
			return validateConditions(obj.Status.Conditions, field.NewPath("status", "conditions"))
		},
		ResetFields: []string{"metadata"},
	},
}.Strategy()

func defaultAPIService(s *apiregistrationv1.APIService) {
	if service := s.Spec.Service; service != nil {
		rules.DefaultTo(&service.Port, defaultPort)
	}
}

// LocalCondition returns the condition Available of a group version that this server itself serves.
func LocalCondition(now metav1.Time) apiregistrationv1.APIServiceCondition {
	return apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, LastTransitionTime: now,
		Reason: "Local", Message: "Local APIServices are always available",
	}
}

// APIServiceColumns is their Table form.
var APIServiceColumns = repeated(columns.Of(
	func(s *apiregistrationv1.APIService, now time.Time) []any {
		service := "Local"
		if ref := s.Spec.Service; ref != nil {
			service = ref.Namespace + "/" + ref.Name
		}
		return []any{s.Name, service, available(s), columns.Since(s.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("Service", "The reference to the service that hosts this API endpoint."),
	columns.Text("Available", "Whether this service is available."),
	columns.Age(),
))

// repeated columns are for watchers of the aggregator's own kind.
func repeated(c kinds.Columns) kinds.Columns {
	c.Repeated = true
	return c
}

func available(s *apiregistrationv1.APIService) string {
	for _, c := range s.Status.Conditions {
		if c.Type != apiregistrationv1.Available {
			continue
		}
		if c.Status == apiregistrationv1.ConditionTrue || c.Reason == "" {
			return string(c.Status)
		}
		return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
	}
	return string(apiregistrationv1.ConditionUnknown)
}

func validateAPIService(s *apiregistrationv1.APIService) field.ErrorList {
	p := field.NewPath("spec")
	want := s.Spec.Version + "." + s.Spec.Group
	errs := apivalidation.ValidateObjectMetaAccessor(rules.Metadata(s), false, func(name string, _ bool) []string {
		if faults := path.IsValidPathSegmentName(name); len(faults) > 0 || name == want {
			return faults
		}
		return []string{fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)}
	}, field.NewPath("metadata"))
	errs = rules.RequiredIf(errs, s.Spec.Group == "" && s.Spec.Version != "v1", p.Child("group"), "only v1 may have an empty group and it better be legacy kube")
	if s.Spec.Group != "" {
		errs = append(errs, rules.Subdomain(s.Spec.Group, p.Child("group"))...)
	}
	errs = append(errs, rules.ServiceLabel(s.Spec.Version, p.Child("version"))...)
	errs = append(errs, validatePriority(s.Spec.GroupPriorityMinimum, maxGroupPriority, p.Child("groupPriorityMinimum"))...)
	errs = append(errs, validatePriority(s.Spec.VersionPriority, maxVersionPriority, p.Child("versionPriority"))...)
	return append(errs, validateTarget(&s.Spec, p)...)
}

func validatePriority(v, limit int32, p *field.Path) field.ErrorList {
	if v > 0 && v <= limit {
		return nil
	}
	return field.ErrorList{field.Invalid(p, v, fmt.Sprintf("must be positive and less than %d", limit))}
}

func validateTarget(s *apiregistrationv1.APIServiceSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	insecure := p.Child("insecureSkipTLSVerify")
	if s.Service == nil {
		if len(s.CABundle) > 0 {
			errs = append(errs, field.Invalid(p.Child("caBundle"), fmt.Sprintf("%d bytes", len(s.CABundle)), "local APIServices may not have a caBundle"))
		}
		return rules.InvalidIf(errs, s.InsecureSkipTLSVerify, insecure, true, "local APIServices may not have insecureSkipTLSVerify")
	}
	service := p.Child("service")
	errs = rules.RequiredIf(errs, s.Service.Namespace == "", service.Child("namespace"), "")
	errs = rules.RequiredIf(errs, s.Service.Name == "", service.Child("name"), "")
	if port := rules.Value(s.Service.Port); len(validation.IsValidPortNum(int(port))) > 0 {
		errs = append(errs, field.Invalid(service.Child("port"), port, "port is not valid: "+strings.Join(validation.IsValidPortNum(int(port)), ", ")))
	}
	return rules.InvalidIf(errs, s.InsecureSkipTLSVerify && len(s.CABundle) > 0, insecure, true, "may not be true if caBundle is present")
}

func validateConditions(list []apiregistrationv1.APIServiceCondition, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	before := map[apiregistrationv1.APIServiceConditionType]int{}
	for i, c := range list {
		at := p.Index(i)
		if c.Status != apiregistrationv1.ConditionTrue && c.Status != apiregistrationv1.ConditionFalse && c.Status != apiregistrationv1.ConditionUnknown {
			errs = append(errs, field.NotSupported(at.Child("status"), c.Status,
				[]apiregistrationv1.ConditionStatus{apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown}))
		}
		for range before[c.Type] {
			if len(errs) > rules.MaxErrors {
				return errs
			}
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		before[c.Type]++
	}
	return errs
}
