package authx

import "errors"

// ErrNameless: a valid credential names no user. A user without a name is authenticated
// nowhere: an empty name would match rules that forgot to name a user.
var ErrNameless = errors.New("the credential is good and names no user")

// named enforces the promise of authenticators: a user has a name.
func named(who *Authenticated, mine bool, err error) (*Authenticated, bool, error) {
	if mine && err == nil && !who.HasName() {
		return nil, true, ErrNameless
	}
	return who, mine, err
}

// HasName reports whether the identity has a name.
func (a *Authenticated) HasName() bool { return a != nil && a.Identity != nil && a.Identity.Name != "" }
