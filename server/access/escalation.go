package access

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
)

// Escalation is the admission plugin that keeps users from granting rights that they lack, through roles or
// bindings. It runs after all plugins that change objects, before validation.
type Escalation struct {
	Rules      *rbac.Rules
	Follower   *follow.Follower
	Authorizer authx.Authorizer // for the verbs escalate and bind
}

// Name implements admission.Plugin.
func (Escalation) Name() string { return "RoleEscalation" }

// Handles implements admission.Plugin.
func (Escalation) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// everything contains the rights that an aggregation rule may collect.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Admit implements admission.Mutator; it changes nothing.
func (e Escalation) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.Resource.Group != rbacv1.GroupName || a.User == nil || a.User.InGroup(authx.GroupMasters) || a.OnlyGarbage() {
		return nil
	}
	switch obj := a.Object.(type) {
	case *rbacv1.Role:
		if e.may(ctx, a, "escalate", rbacv1.GroupName, a.Resource.Plural, requestName(ctx, a)) {
			return nil
		}
		return e.confirm(a, obj.Name, obj.Rules)
	case *rbacv1.ClusterRole:
		if e.may(ctx, a, "escalate", rbacv1.GroupName, a.Resource.Plural, requestName(ctx, a)) {
			return nil
		}
		return e.clusterRole(a, obj)
	case *rbacv1.RoleBinding:
		return e.binding(ctx, a, obj.Name, obj.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return e.binding(ctx, a, obj.Name, obj.RoleRef)
	}
	return nil
}

// requestName returns the name in the path, which a POST does not have.
func requestName(ctx context.Context, a *admission.Attributes) string {
	if scope := request.From(ctx); scope.Info != nil {
		return scope.Info.Name
	}
	return a.Name
}

func (e Escalation) may(ctx context.Context, a *admission.Attributes, verb, group, resource, name string) bool {
	if e.Authorizer == nil {
		return false
	}
	d, _, _ := e.Authorizer.Authorize(ctx, &authx.Attributes{
		User: a.User, Verb: verb, Namespace: a.Namespace, APIGroup: group, APIVersion: "*",
		Resource: resource, Name: name, ResourceRequest: true,
	})
	return d == authx.Allow
}

func (e Escalation) clusterRole(a *admission.Attributes, r *rbacv1.ClusterRole) error {
	if err := e.confirm(a, r.Name, r.Rules); err != nil {
		return err
	}
	old, _ := a.Old.(*rbacv1.ClusterRole)
	if (gathers(r) || old != nil && gathers(old)) && e.confirm(a, r.Name, everything) != nil {
		return apierrors.NewForbidden(a.Resource.GroupResource(), r.Name, errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

func gathers(r *rbacv1.ClusterRole) bool {
	return r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

func (e Escalation) binding(ctx context.Context, a *admission.Attributes, name string, ref rbacv1.RoleRef) error {
	resource := ""
	switch ref.Kind {
	case "Role":
		resource = "roles"
	case "ClusterRole":
		resource = "clusterroles"
	}
	if resource != "" && e.may(ctx, a, "bind", ref.APIGroup, resource, ref.Name) {
		return nil
	}
	if resource == "" {
		return status.Plain(fmt.Sprintf("unsupported role reference kind: %q", ref.Kind))
	}
	if resource == "roles" && a.Namespace == "" {
		return apierrors.NewBadRequest("Namespace parameter required.")
	}
	if err := objects.CheckName(ref.Name); err != nil {
		return err
	}
	e.Follower.RLock()
	rules, ok := e.Rules.OfRole(ref, a.Namespace)
	e.Follower.RUnlock()
	if !ok {
		// A stock server names the resource of the binding here.
		return apierrors.NewNotFound(a.Resource.GroupResource(), ref.Name)
	}
	return e.confirm(a, name, rules)
}

// confirm refuses rules that the user lacks.
func (e Escalation) confirm(a *admission.Attributes, name string, rules []rbacv1.PolicyRule) error {
	e.Follower.RLock()
	held, problem := e.Rules.Held(a.User, a.Namespace)
	e.Follower.RUnlock()
	missing, err := rbac.Uncovered(held, rules)
	if err == nil && len(missing) == 0 {
		return nil
	}
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n", a.User.Name, a.User.Groups)
	if err != nil {
		text += err.Error()
	} else {
		text += rbac.Describe(missing)
	}
	if problem != nil {
		text += fmt.Sprintf("; resolution errors: %v", []error{problem})
	}
	return apierrors.NewForbidden(a.Resource.GroupResource(), name, errors.New(text))
}
