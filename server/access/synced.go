// Package access connects authentication and authorization with the objects that the server stores:
// authorizers follow the roles and pods in the cache, authenticators look up the Secrets and accounts to
// which tokens refer, and the default roles are restored.
//
// A decision takes all writes into account that were acknowledged before it.
package access

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/follow"
)

// Synced is an authorizer whose state a follower keeps in step with the cache.
type Synced struct {
	Follower *follow.Follower
	authx.Authorizer
	// Denials logs requests that the authorizer does not allow, whatever other authorizers decide; nil: no
	// log.
	Denials *slog.Logger
}

// Authorize implements authx.Authorizer.
func (s Synced) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	s.Follower.RLock()
	defer s.Follower.RUnlock()
	d, reason, err := s.Authorizer.Authorize(ctx, a)
	if d != authx.Allow && s.Denials != nil && s.Denials.Enabled(ctx, slog.LevelDebug) {
		s.logDenial(a, reason)
	}
	return d, reason, err
}

func (s Synced) logDenial(a *authx.Attributes, reason string) {
	if a.User == nil {
		return
	}
	what := fmt.Sprintf("path %q", a.Path)
	if a.ResourceRequest {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		if a.APIGroup != "" {
			resource += "." + a.APIGroup
		}
		what = fmt.Sprintf("resource %q named %q", resource, a.Name)
		if a.Namespace == "" {
			what += " cluster-wide"
		} else {
			what += fmt.Sprintf(" in namespace %q", a.Namespace)
		}
	}
	s.Denials.Debug(fmt.Sprintf("RBAC: no rules authorize user %q with groups %q to %s %s", a.User.Name, a.User.Groups, a.Verb, what), "reason", reason)
}

// SyncedRules lists a user's rights from the state of a follower.
type SyncedRules struct {
	Follower *follow.Follower
	authx.RuleResolver
}

// RulesFor implements authx.RuleResolver.
func (s SyncedRules) RulesFor(ctx context.Context, user *authx.Identity, namespace string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	s.Follower.RLock()
	defer s.Follower.RUnlock()
	return s.RuleResolver.RulesFor(ctx, user, namespace)
}
