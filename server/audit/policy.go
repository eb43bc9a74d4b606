package audit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/authx"
)

// Level determines the part of a request that an event contains.
type Level string

// The levels, each holding more than the one before.
const (
	None            Level = "None"
	Metadata        Level = "Metadata"
	Request         Level = "Request"
	RequestResponse Level = "RequestResponse"
)

var levels = []Level{None, Metadata, Request, RequestResponse}

// Stage is a moment in a request's life.
type Stage string

const (
	RequestReceived  Stage = "RequestReceived"
	ResponseStarted  Stage = "ResponseStarted"
	ResponseComplete Stage = "ResponseComplete"
	Panic            Stage = "Panic"
)

var stages = []string{string(RequestReceived), string(ResponseStarted), string(ResponseComplete), string(Panic)}

// Policy selects the requests to record, and their level. The first rule that matches
// decides; a request that no rule matches is not recorded.
type Policy struct {
	OmitStages        []Stage `json:"omitStages,omitempty"`
	OmitManagedFields bool    `json:"omitManagedFields,omitempty"`
	Rules             []Rule  `json:"rules"`

	// Remarks name the fields of the file that are not known, and so do not count.
	Remarks []string `json:"-"`
}

// Rule is a rule of a policy; its empty fields match everything.
type Rule struct {
	Level             Level       `json:"level"`
	Users             []string    `json:"users,omitempty"`
	UserGroups        []string    `json:"userGroups,omitempty"`
	Verbs             []string    `json:"verbs,omitempty"`
	Resources         []Resources `json:"resources,omitempty"`
	Namespaces        []string    `json:"namespaces,omitempty"`
	NonResourceURLs   []string    `json:"nonResourceURLs,omitempty"`
	OmitStages        []Stage     `json:"omitStages,omitempty"`
	OmitManagedFields *bool       `json:"omitManagedFields,omitempty"`
}

// allGroups matches all groups, in the releases that have it.
const allGroups = "*"

// Resources are resources of one API group, or of all.
type Resources struct {
	Group         string   `json:"group,omitempty"`
	Resources     []string `json:"resources,omitempty"`
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// Load reads a policy file. anyGroup: the group "*" matches all groups; else it is refused.
func Load(path string, anyGroup bool) (*Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: failed to read file path %q: %w", path, err)
	}
	p, err := parse(data, anyGroup)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: %w: from file %s", err, path)
	}
	return p, nil
}

// Parse reads a policy as YAML or JSON. Fields that are not known are let pass, as on a
// stock server, and remarked on.
func Parse(data []byte) (*Policy, error) { return parse(data, false) }

func parse(data []byte, anyGroup bool) (*Policy, error) {
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("failed decoding: %w", err)
	}
	var file written
	strange, err := sigsjson.UnmarshalStrict(asJSON, &file)
	if err != nil {
		return nil, fmt.Errorf("failed decoding: %w", err)
	}
	switch {
	case file.Kind == "":
		return nil, errors.New("failed decoding: Object 'Kind' is missing in the policy")
	case file.APIVersion == "":
		return nil, errors.New("failed decoding: Object 'apiVersion' is missing in the policy")
	case file.APIVersion != apiVersion || file.Kind != "Policy":
		return nil, fmt.Errorf("failed decoding: no kind %q is registered for version %q", file.Kind, file.APIVersion)
	}
	p := &file.Policy
	for _, field := range strange {
		p.Remarks = append(p.Remarks, field.Error())
	}
	if err := p.validate(anyGroup).ToAggregate(); err != nil {
		return nil, err
	}
	if len(p.Rules) == 0 {
		return nil, errors.New("loaded illegal policy with 0 rules")
	}
	return p, nil
}

// written are the fields that a policy file may have. A misspelt field could have decided whether something
// is recorded.
type written struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Policy            `json:",inline"`
}

func (p *Policy) validate(anyGroup bool) field.ErrorList {
	errs := validateStages(p.OmitStages, field.NewPath("omitStages"))
	for i := range p.Rules {
		errs = append(errs, p.Rules[i].validate(field.NewPath("rules").Index(i), anyGroup)...)
	}
	return errs
}

func validateStages(list []Stage, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range list {
		if !slices.Contains(stages, string(s)) {
			errs = append(errs, field.Invalid(at.Index(i), string(s), "allowed stages are "+strings.Join(stages, ",")))
		}
	}
	return errs
}

func (r *Rule) validate(at *field.Path, anyGroup bool) field.ErrorList {
	var errs field.ErrorList
	switch {
	case r.Level == "":
		errs = append(errs, field.Required(at.Child("level"), ""))
	case !slices.Contains(levels, r.Level):
		errs = append(errs, field.NotSupported(at.Child("level"), r.Level, levels))
	}
	urls := at.Child("nonResourceURLs")
	for i, u := range r.NonResourceURLs {
		if u == "*" {
			continue
		}
		if !strings.HasPrefix(u, "/") {
			errs = append(errs, field.Invalid(urls.Index(i), u, "non-resource URL rules must begin with a '/' character"))
		}
		if star := strings.IndexByte(u, '*'); star >= 0 && star < len(u)-1 {
			errs = append(errs, field.Invalid(urls.Index(i), u, "non-resource URL wildcards '*' must be the final character of the rule"))
		}
	}
	errs = append(errs, r.validateResources(at.Child("resources"), anyGroup)...)
	errs = append(errs, validateStages(r.OmitStages, at.Child("omitStages"))...)
	if len(r.NonResourceURLs) > 0 && len(r.Resources)+len(r.Namespaces) > 0 {
		errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
	}
	return errs
}

func (r *Rule) validateResources(at *field.Path, anyGroup bool) field.ErrorList {
	var errs field.ErrorList
	for _, set := range r.Resources {
		if set.Group != "" && (set.Group != allGroups || !anyGroup) {
			if msgs := validation.NameIsDNSSubdomain(set.Group, false); len(msgs) > 0 {
				errs = append(errs, field.Invalid(at.Child("group"), set.Group, strings.Join(msgs, ",")))
			}
		}
		if len(set.ResourceNames) > 0 && len(set.Resources) == 0 {
			errs = append(errs, field.Invalid(at.Child("resourceNames"), set.ResourceNames, "using resourceNames requires at least one resource"))
		}
	}
	return errs
}

// PolicyDecision is the decision of a policy on one request.
type PolicyDecision struct {
	Level             Level
	OmitManagedFields bool

	all, own []Stage // those of the policy and of the rule
}

// Omits reports whether a stage is left out.
func (v *PolicyDecision) Omits(s Stage) bool {
	return slices.Contains(v.all, s) || slices.Contains(v.own, s)
}

// For decides on a request. Its user is nil if it was not authenticated.
func (p *Policy) For(a *authx.Attributes) PolicyDecision {
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.matches(a) {
			continue
		}
		v := PolicyDecision{Level: r.Level, OmitManagedFields: p.OmitManagedFields, all: p.OmitStages, own: r.OmitStages}
		if r.OmitManagedFields != nil {
			v.OmitManagedFields = *r.OmitManagedFields
		}
		return v
	}
	return PolicyDecision{Level: None}
}

func (r *Rule) matches(a *authx.Attributes) bool {
	if len(r.Users) > 0 && (a.User == nil || !slices.Contains(r.Users, a.User.Name)) {
		return false
	}
	if len(r.UserGroups) > 0 && (a.User == nil || !slices.ContainsFunc(r.UserGroups, a.User.InGroup)) {
		return false
	}
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, a.Verb) {
		return false
	}
	switch {
	case len(r.Namespaces) > 0 || len(r.Resources) > 0:
		return a.ResourceRequest && r.matchesResource(a)
	case len(r.NonResourceURLs) > 0:
		return !a.ResourceRequest && slices.ContainsFunc(r.NonResourceURLs, func(u string) bool {
			start, open := strings.CutSuffix(u, "*")
			return u == a.Path || open && strings.HasPrefix(a.Path, start)
		})
	}
	return true
}

func (r *Rule) matchesResource(a *authx.Attributes) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, a.Namespace) {
		return false
	}
	if len(r.Resources) == 0 {
		return true
	}
	return slices.ContainsFunc(r.Resources, func(set Resources) bool {
		if set.Group != a.APIGroup && set.Group != allGroups {
			return false
		}
		if len(set.Resources) == 0 {
			return true
		}
		return (len(set.ResourceNames) == 0 || slices.Contains(set.ResourceNames, a.Name)) &&
			slices.ContainsFunc(set.Resources, func(pattern string) bool { return names(pattern, a.Resource, a.Subresource) })
	})
}

// names reports whether a pattern of a rule is of a resource: "pods", "pods/log",
// "pods/*", "*/scale", "*". A resource alone does not include its subresources.
func names(pattern, resource, sub string) bool {
	if pattern == "*" {
		return true
	}
	base, tail, parted := strings.Cut(pattern, "/")
	if !parted {
		return sub == "" && pattern == resource
	}
	switch {
	case base == "*":
		return sub != "" && tail == sub
	case tail == "*":
		return base == resource
	}
	return base == resource && tail == sub && sub != ""
}
