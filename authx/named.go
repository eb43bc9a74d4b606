package authx

import "errors"

// ErrNameless: a credential was found good and names nobody. Who has no name is let in
// nowhere: an empty name would be that of whoever a rule forgot to name.
var ErrNameless = errors.New("the credential is good and names no user")

// named holds an answer of an authenticator to its promise: who is found has a name.
func named(who *Authenticated, mine bool, err error) (*Authenticated, bool, error) {
	if mine && err == nil && !who.HasName() {
		return nil, true, ErrNameless
	}
	return who, mine, err
}

// HasName says whether it is known who it is.
func (a *Authenticated) HasName() bool { return a != nil && a.Identity != nil && a.Identity.Name != "" }
