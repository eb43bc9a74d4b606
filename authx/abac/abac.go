// Package abac authorizes by a file of policies, one JSON object a line.
//
// It promises: a file with a line that cannot be parsed is refused, with an error that names the
// line; a policy only ever adds permission; the file is read once.
package abac

import (
	"context"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/authx"
)

// all is the value of an attribute that matches any.
const all = "*"

// Policy lets a subject do something. In the subject and the attributes "" is the
// zero value of an attribute, and "*" any value.
type Policy struct {
	Spec PolicySpec `json:"spec"`
}

// PolicySpec grants permissions. A policy is about resources or about paths;
// Readonly leaves only get, list and watch of resources, and GET and HEAD of paths.
type PolicySpec struct {
	User            string `json:"user,omitempty"`
	Group           string `json:"group,omitempty"`
	Readonly        bool   `json:"readonly,omitempty"`
	APIGroup        string `json:"apiGroup,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	NonResourcePath string `json:"nonResourcePath,omitempty"`
}

// Authorizer allows requests that one of its policies allows.
type Authorizer struct {
	Policies []PolicySpec
	// Legacy counts policies of the form without a version.
	Legacy int
	// Remarks name the fields of the file that are not known, and so do not count: a policy
	// that lacks one it was to have allows more.
	Remarks []string
}

// Authorize implements authx.Authorizer.
func (z *Authorizer) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	for i := range z.Policies {
		if z.Policies[i].allows(a) {
			return authx.Allow, "", nil
		}
	}
	return authx.NoOpinion, "No policy matched.", nil
}

// RulesFor implements authx.RuleResolver.
func (z *Authorizer) RulesFor(_ context.Context, user *authx.Identity, namespace string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	var resources []authx.ResourceRule
	var paths []authx.NonResourceRule
	for i := range z.Policies {
		p := &z.Policies[i]
		if !p.isAbout(user) || p.Namespace != all && p.Namespace != namespace {
			continue
		}
		if p.Resource != "" {
			resources = append(resources, authx.ResourceRule{Verbs: p.verbs(readVerbs), APIGroups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			paths = append(paths, authx.NonResourceRule{Verbs: p.verbs(readMethods), NonResourceURLs: []string{p.NonResourcePath}})
		}
	}
	return resources, paths, false, nil
}

// The verbs, of resources and of paths, that a Readonly policy allows. A verb of a path is an HTTP method:
// "list" and "watch" are not.
var (
	readVerbs   = []string{"get", "list", "watch"}
	readMethods = []string{"get", "head"}
)

func (p *PolicySpec) verbs(read []string) []string {
	if p.Readonly {
		return slices.Clone(read)
	}
	return []string{all}
}

func (p *PolicySpec) allows(a *authx.Attributes) bool {
	read := readMethods
	if a.ResourceRequest {
		read = readVerbs
	}
	if p.Readonly && !slices.Contains(read, a.Verb) {
		return false
	}
	if a.ResourceRequest {
		return matches(p.Namespace, a.Namespace) && matches(p.Resource, a.Resource) && matches(p.APIGroup, a.APIGroup) && p.isAbout(a.User)
	}
	return p.reaches(a.Path) && p.isAbout(a.User)
}

func matches(policy, value string) bool { return policy == all || policy == value }

// reaches reports whether a path is the policy's, or below one that ends in "*".
func (p *PolicySpec) reaches(path string) bool {
	if p.NonResourcePath == path || p.NonResourcePath == all {
		return true
	}
	above, below := strings.CutSuffix(p.NonResourcePath, all)
	return below && strings.HasPrefix(path, strings.TrimRight(above, all))
}

// isAbout wants the user and the group where both are named; a policy that names
// neither matches no user.
func (p *PolicySpec) isAbout(user *authx.Identity) bool {
	if user == nil || p.User == "" && p.Group == "" {
		return false
	}
	return (p.User == "" || p.User == user.Name) && (p.Group == "" || slices.Contains(user.Groups, p.Group))
}
