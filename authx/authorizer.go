package authx

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Attributes are the attributes of a request on which an authorizer decides.
type Attributes struct {
	User            *Identity
	Verb            string // "get", "list" ...; the lower-case HTTP method for paths
	Namespace       string
	APIGroup        string
	APIVersion      string
	Resource        string
	Subresource     string
	Name            string
	ResourceRequest bool
	Path            string // of non-resource requests

	// Selectors of list, watch and deletecollection; the Err is why one did not parse.
	FieldRequirements fields.Requirements
	FieldErr          error
	LabelRequirements labels.Requirements
	LabelErr          error
}

// Decision is an authorizer's answer. The zero value is no opinion,
// and a request on which no authorizer has an opinion is denied.
type Decision uint8

const (
	NoOpinion Decision = iota
	Allow
	Deny
)

// Authorizer decides. reason may be shown to the client; err may come with any decision.
type Authorizer interface {
	Authorize(ctx context.Context, a *Attributes) (d Decision, reason string, err error)
}

// WithoutSelectors hides the selectors of requests from an authorizer.
type WithoutSelectors struct{ Next Authorizer }

// Authorize implements Authorizer.
func (u WithoutSelectors) Authorize(ctx context.Context, a *Attributes) (Decision, string, error) {
	if a.FieldRequirements == nil && a.FieldErr == nil && a.LabelRequirements == nil && a.LabelErr == nil {
		return u.Next.Authorize(ctx, a)
	}
	bare := *a
	bare.FieldRequirements, bare.FieldErr, bare.LabelRequirements, bare.LabelErr = nil, nil, nil, nil
	return u.Next.Authorize(ctx, &bare)
}

// RuleResolver lists a user's rights in a namespace, for SelfSubjectRulesReview.
type RuleResolver interface {
	RulesFor(ctx context.Context, user *Identity, namespace string) (resource []ResourceRule, nonResource []NonResourceRule, incomplete bool, err error)
}

// ResourceRule and NonResourceRule are as in authorization.k8s.io/v1.
type ResourceRule struct{ Verbs, APIGroups, Resources, ResourceNames []string }
type NonResourceRule struct{ Verbs, NonResourceURLs []string }
