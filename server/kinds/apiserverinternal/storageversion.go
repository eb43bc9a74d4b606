// Package apiserverinternal holds the strategy of StorageVersions, in which the servers of
// a cluster record the version in which each of them stores a resource.
package apiserverinternal

import (
	"fmt"
	"strings"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/status"
)

const (
	shownServers  = 3       // in a cell of the table
	shownVersions = 1 << 10 // bytes of them in an error
)

// StorageVersion has the rules for StorageVersions. Their spec is empty.
var StorageVersion = kinds.Typed[*apiserverinternalv1alpha1.StorageVersion]{
	ValidateName: validateName,
	Meta:         &kinds.MetaRules{},
	Validate: func(v *apiserverinternalv1alpha1.StorageVersion) field.ErrorList {
		return validateStatus(&v.Status)
	},
	ValidateUpdate: func(_, _ *apiserverinternalv1alpha1.StorageVersion) field.ErrorList { return nil },
	Status: &kinds.Status[*apiserverinternalv1alpha1.StorageVersion]{
		Meta:          &kinds.MetaRules{},
		KeepsMetadata: true,
		Validate:      func(v, _ *apiserverinternalv1alpha1.StorageVersion) field.ErrorList { return validateStatus(&v.Status) },
		ResetFields:   []string{"metadata"},
	},
}.Strategy()

// StorageVersionColumns is their Table form.
var StorageVersionColumns = columns.Of(
	func(v *apiserverinternalv1alpha1.StorageVersion, now time.Time) []any {
		common := "<unset>"
		if c := v.Status.CommonEncodingVersion; c != nil {
			common = *c
		}
		return []any{v.Name, common, servers(v.Status.StorageVersions), columns.Since(v.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("CommonEncodingVersion", apiserverinternalv1alpha1.StorageVersionStatus{}.SwaggerDoc()["commonEncodingVersion"]),
	columns.Text("StorageVersions", apiserverinternalv1alpha1.StorageVersionStatus{}.SwaggerDoc()["storageVersions"]),
	columns.Age(),
)

func servers(list []apiserverinternalv1alpha1.ServerStorageVersion) string {
	texts := make([]string, 0, min(len(list), shownServers))
	for i := range list[:min(len(list), shownServers)] {
		texts = append(texts, list[i].APIServerID+"="+list[i].EncodingVersion)
	}
	text := strings.Join(texts, ",")
	if len(list) > shownServers {
		text += fmt.Sprintf(" + %d more...", len(list)-shownServers)
	}
	return text
}

// validateName wants the group and the resource.
func validateName(name string, _ bool) []string {
	i := strings.LastIndex(name, ".")
	if i < 0 {
		return []string{"name must be in the form of <group>.<resource>"}
	}
	return append(prefixed("the group segment ", validation.IsDNS1123Subdomain(name[:i])),
		prefixed("the resource segment ", validation.IsDNS1035Label(name[i+1:]))...)
}

func prefixed(prefix string, messages []string) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = prefix + m
	}
	return out
}

func validateStatus(s *apiserverinternalv1alpha1.StorageVersionStatus) field.ErrorList {
	p := field.NewPath("status")
	var errs field.ErrorList
	seen := make(map[string]bool, len(s.StorageVersions))
	for i := range rules.Until(&errs, s.StorageVersions) {
		v, at := &s.StorageVersions[i], p.Child("storageVersions").Index(i)
		errs = rules.DuplicateIf(errs, seen[v.APIServerID], at.Child("apiServerID"), v.APIServerID)
		seen[v.APIServerID] = true
		errs = append(errs, validateServer(v, at)...)
	}
	errs = append(errs, validateCommon(s, p.Child("commonEncodingVersion"))...)
	return append(errs, validateConditions(s.Conditions, p)...)
}

func validateServer(v *apiserverinternalv1alpha1.ServerStorageVersion, p *field.Path) field.ErrorList {
	errs := rules.Messages(p.Child("apiServerID"), v.APIServerID, apivalidation.NameIsDNSSubdomain(v.APIServerID, false))
	version := func(at *field.Path, text string) {
		if messages := apiVersion(text); len(messages) > 0 {
			errs = append(errs, field.Invalid(at, text, strings.Join(messages, ",")))
		}
	}
	version(p.Child("encodingVersion"), v.EncodingVersion)
	decodable := make(map[string]bool, len(v.DecodableVersions))
	for i, d := range rules.Until(&errs, v.DecodableVersions) {
		version(p.Child("decodableVersions").Index(i), d)
		decodable[d] = true
	}
	if !decodable[v.EncodingVersion] {
		errs = append(errs, field.Invalid(p.Child("decodableVersions"), rules.Shown(v.DecodableVersions), "decodableVersions must include encodingVersion "+v.EncodingVersion))
	}
	all := "" // each of many served versions that cannot be decoded is refused with the list
	for i, served := range rules.Until(&errs, v.ServedVersions) {
		at := p.Child("servedVersions").Index(i)
		version(at, served)
		if !decodable[served] {
			if all == "" {
				all = status.Brief(fmt.Sprint(v.DecodableVersions), shownVersions)
			}
			errs = append(errs, field.Invalid(at, served, fmt.Sprintf("individual served version : %s must be included in decodableVersions : %s", served, all)))
		}
	}
	return errs
}

// Common returns the version in which all servers store; nil if they disagree, or there is none.
func Common(list []apiserverinternalv1alpha1.ServerStorageVersion) *string {
	if len(list) == 0 {
		return nil
	}
	common := list[0].EncodingVersion
	for i := range list {
		if list[i].EncodingVersion != common {
			return nil
		}
	}
	return &common
}

func validateCommon(s *apiserverinternalv1alpha1.StorageVersionStatus, p *field.Path) field.ErrorList {
	actual, published := Common(s.StorageVersions), s.CommonEncodingVersion
	switch {
	case actual == nil && published != nil:
		return field.ErrorList{field.Invalid(p, *published, "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet")}
	case actual != nil && published == nil:
		return field.ErrorList{field.Invalid(p, published, "the common encoding version is "+*actual)}
	case actual != nil && *actual != *published:
		return field.ErrorList{field.Invalid(p, *published, "the actual common encoding version is "+*actual)}
	}
	return nil
}

func validateConditions(list []apiserverinternalv1alpha1.StorageVersionCondition, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[apiserverinternalv1alpha1.StorageVersionConditionType]int, len(list))
	for i := range rules.Until(&errs, list) {
		c, at := &list[i], p.Index(i)
		if first, ok := seen[c.Type]; ok {
			errs = append(errs, field.Invalid(at.Child("type"), string(c.Type), fmt.Sprintf("the type of the condition is not unique, it also appears in conditions[%d]", first)))
		}
		seen[c.Type] = i
		errs = append(errs, rules.QualifiedName(string(c.Type), at.Child("type"))...)
		errs = append(errs, rules.QualifiedName(string(c.Status), at.Child("status"))...)
		errs = rules.RequiredIf(errs, c.Reason == "", at.Child("reason"), "")
		errs = rules.RequiredIf(errs, c.Message == "", at.Child("message"), "")
	}
	return errs
}

// apiVersion returns why a version, with or without its group, is invalid.
func apiVersion(text string) []string {
	parts := strings.Split(text, "/")
	if len(parts) > 2 {
		const label = "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character"
		return []string{"an apiVersion is " + validation.RegexError(label, "[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123") +
			" with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"}
	}
	part := func(name, text string, check func(string) []string) []string {
		if text == "" {
			return []string{name + " part: " + validation.EmptyError()}
		}
		return prefixed(name+" part: ", check(text))
	}
	var messages []string
	if len(parts) == 2 {
		messages = part("group", parts[0], validation.IsDNS1123Subdomain)
	}
	return append(messages, part("version", parts[len(parts)-1], validation.IsDNS1035Label)...)
}
