// Package authx identifies users and decides what they may do. It holds the contract: identities,
// authenticators, authorizers and their chains; each mechanism is a package below it.
//
// An authenticator that finds no credential of its kind returns no error; the zero Decision denies;
// credentials are stripped from a request once used, and never logged.
package authx

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/validation"
)

// Identity is the user of a request. Values are shared and must not be changed.
type Identity struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Well-known names.
const (
	Anonymous            = "system:anonymous"
	GroupUnauthenticated = "system:unauthenticated"
	GroupAuthenticated   = "system:authenticated"
	GroupMasters         = "system:masters"
	GroupNodes           = "system:nodes"
	NodePrefix           = "system:node:"
	ServiceAccountPrefix = "system:serviceaccount:"
	GroupServiceAccounts = "system:serviceaccounts"
)

// InGroup reports whether the identity is a member of group.
func (i *Identity) InGroup(group string) bool {
	return slices.Contains(i.Groups, group)
}

// Covers reports whether i is the same user as other, and has all groups of other. It ignores Extra, which may differ each time that a
// credential is checked.
func (i *Identity) Covers(other *Identity) bool {
	if i.Name != other.Name || i.UID != other.UID {
		return false
	}
	now := make(map[string]struct{}, len(i.Groups))
	for _, group := range i.Groups {
		now[group] = struct{}{}
	}
	for _, group := range other.Groups {
		if _, ok := now[group]; !ok {
			return false
		}
	}
	return true
}

// UserInfo returns the identity as reviews and audit events have it; nil is an empty one.
func (i *Identity) UserInfo() authenticationv1.UserInfo {
	if i == nil {
		return authenticationv1.UserInfo{}
	}
	u := authenticationv1.UserInfo{Username: i.Name, UID: i.UID, Groups: i.Groups}
	if len(i.Extra) > 0 {
		u.Extra = make(map[string]authenticationv1.ExtraValue, len(i.Extra))
		for k, v := range i.Extra {
			u.Extra[k] = v
		}
	}
	return u
}

// SplitServiceAccount takes the name of a user apart that is a service account. A name
// that no account can have belongs to another user.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, ServiceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok || len(validation.ValidateNamespaceName(namespace, false)) > 0 || len(validation.ValidateServiceAccountName(name, false)) > 0 {
		return "", "", false
	}
	return namespace, name, true
}
