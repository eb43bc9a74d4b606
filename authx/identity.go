// Package authx says who is asking and whether they may. It holds the contract:
// identities, authenticators, authorizers and their chains; each mechanism is a
// package below it.
//
// It promises: not mine is not an error; the zero Decision denies; credentials
// are stripped from a request once used, and never logged.
package authx

// Identity is who makes a request. Values are shared and must not be changed.
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

// InGroup says whether the identity is a member of group.
func (i *Identity) InGroup(group string) bool {
	for _, g := range i.Groups {
		if g == group {
			return true
		}
	}
	return false
}
