package authzconfig

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx/webhook"
)

const (
	maxTimeout    = 30 * time.Second
	maxConditions = 64

	defaultAuthorizedTTL   = 5 * time.Minute
	defaultUnauthorizedTTL = 30 * time.Second
)

func (c *Configuration) setDefaults() {
	for _, a := range c.Authorizers {
		if w := a.Webhook; w != nil {
			w.AuthorizedTTL.Duration = cmp.Or(w.AuthorizedTTL.Duration, defaultAuthorizedTTL)
			w.UnauthorizedTTL.Duration = cmp.Or(w.UnauthorizedTTL.Duration, defaultUnauthorizedTTL)
		}
	}
}

func (c *Configuration) validate(selectors bool) field.ErrorList {
	p := field.NewPath("authorizers")
	var errs field.ErrorList
	if len(c.Authorizers) == 0 {
		errs = append(errs, field.Required(p, "at least one authorization mode must be defined"))
	}
	types, names := map[string]bool{}, map[string]bool{}
	for i, a := range c.Authorizers {
		p := p.Index(i)
		switch {
		case a.Type == "":
			errs = append(errs, field.Required(p.Child("type"), ""))
			continue
		case !slices.Contains(Types, a.Type):
			errs = append(errs, field.NotSupported(p.Child("type"), a.Type, Types))
			continue
		case types[a.Type] && a.Type != TypeWebhook:
			errs = append(errs, field.Duplicate(p.Child("type"), a.Type))
			continue
		}
		types[a.Type] = true
		errs = append(errs, validateName(a.Name, names, p.Child("name"))...)
		names[a.Name] = true
		switch {
		case a.Type == TypeWebhook && a.Webhook == nil:
			errs = append(errs, field.Required(p.Child("webhook"), "required when type=Webhook"))
		case a.Type == TypeWebhook:
			errs = append(errs, a.Webhook.validate(p, selectors)...)
		case a.Webhook != nil:
			errs = append(errs, field.Invalid(p.Child("webhook"), "non-null", "may only be specified when type=Webhook"))
		}
	}
	return errs
}

func validateName(name string, taken map[string]bool, p *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(p, "")}
	case taken[name]:
		return field.ErrorList{field.Duplicate(p, name)}
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(p, name, "authorizer name is invalid: "+strings.Join(problems, ", "))}
	}
	return nil
}

// validate names fields as a stock server does: without "webhook" in their paths.
func (w *Webhook) validate(p *field.Path, selectors bool) field.ErrorList {
	var errs field.ErrorList
	switch d := w.Timeout.Duration; {
	case d == 0:
		errs = append(errs, field.Required(p.Child("timeout"), ""))
	case d < 0 || d > maxTimeout:
		errs = append(errs, field.Invalid(p.Child("timeout"), d.String(), "must be > 0s and <= 30s"))
	}
	if d := w.AuthorizedTTL.Duration; d < 0 {
		errs = append(errs, field.Invalid(p.Child("authorizedTTL"), d.String(), "must be > 0s"))
	}
	if d := w.UnauthorizedTTL.Duration; d < 0 {
		errs = append(errs, field.Invalid(p.Child("unauthorizedTTL"), d.String(), "must be > 0s"))
	}
	errs = append(errs, oneOf(w.SubjectAccessReviewVersion, p.Child("subjectAccessReviewVersion"), "v1", "v1beta1")...)
	if version := p.Child("matchConditionSubjectAccessReviewVersion"); w.MatchConditionSubjectAccessReviewVersion != "" {
		errs = append(errs, oneOf(w.MatchConditionSubjectAccessReviewVersion, version, "v1")...)
	} else if len(w.MatchConditions) > 0 {
		errs = append(errs, field.Required(version, "required if match conditions are specified"))
	}
	errs = append(errs, oneOf(w.FailurePolicy, p.Child("failurePolicy"), FailurePolicyNoOpinion, FailurePolicyDeny)...)
	errs = append(errs, w.ConnectionInfo.validate(p.Child("connectionInfo"))...)
	return append(errs, w.compile(p.Child("matchConditions"), selectors)...)
}

func oneOf(value string, p *field.Path, supported ...string) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(p, "")}
	case !slices.Contains(supported, value):
		return field.ErrorList{field.NotSupported(p, value, supported)}
	}
	return nil
}

func (c *ConnectionInfo) validate(p *field.Path) field.ErrorList {
	file := p.Child("kubeConfigFile")
	switch c.Type {
	case ConnectionKubeConfig:
		return validateFile(c.KubeConfigFile, file)
	case ConnectionInCluster:
		var errs field.ErrorList
		if c.KubeConfigFile != nil {
			errs = append(errs, field.Invalid(file, *c.KubeConfigFile, "can only be set when type=KubeConfigFile"))
		}
		// There is no cluster that this server could be a pod of.
		return append(errs, field.Invalid(p.Child("type"), c.Type, "the API server itself cannot use the configuration of a pod"))
	}
	return oneOf(c.Type, p.Child("type"), ConnectionInCluster, ConnectionKubeConfig)
}

func validateFile(name *string, p *field.Path) field.ErrorList {
	if name == nil || *name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	if !filepath.IsAbs(*name) {
		return field.ErrorList{field.Invalid(p, *name, "must be an absolute path")}
	}
	info, err := os.Stat(*name)
	if err != nil {
		return field.ErrorList{field.Invalid(p, *name, fmt.Sprintf("error loading file: %v", err))}
	}
	if !info.Mode().IsRegular() {
		return field.ErrorList{field.Invalid(p, *name, "must be a regular file")}
	}
	return nil
}

// compile compiles the match conditions.
func (w *Webhook) compile(p *field.Path, selectors bool) field.ErrorList {
	if n := len(w.MatchConditions); n > maxConditions {
		return field.ErrorList{field.TooMany(p, n, maxConditions)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	w.conditions = nil
	for i, m := range w.MatchConditions {
		p := p.Index(i).Child("expression")
		switch {
		case strings.TrimSpace(m.Expression) == "":
			errs = append(errs, field.Required(p, ""))
			continue
		case seen[m.Expression]:
			errs = append(errs, field.Duplicate(p, m.Expression))
			continue
		}
		seen[m.Expression] = true
		c, err := webhook.Compile(m.Expression, selectors)
		if err != nil {
			errs = append(errs, field.Invalid(p, m.Expression, err.Error()))
			continue
		}
		w.conditions = append(w.conditions, c)
	}
	return errs
}
