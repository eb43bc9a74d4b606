package admission

import (
	"context"
	"errors"
)

// AlwaysDeny refuses every write and every connection.
type AlwaysDeny struct{}

var (
	_ Mutator   = AlwaysDeny{}
	_ Validator = AlwaysDeny{}
)

// Name implements Plugin.
func (AlwaysDeny) Name() string { return "AlwaysDeny" }

// Handles implements Plugin.
func (AlwaysDeny) Handles(Operation) bool { return true }

// Admit implements Mutator.
func (p AlwaysDeny) Admit(ctx context.Context, a *Attributes) error { return p.Validate(ctx, a) }

// Validate implements Validator.
func (AlwaysDeny) Validate(_ context.Context, a *Attributes) error {
	return a.Forbid(errors.New("admission control is denying all modifications"))
}

// AlwaysAdmit lets every write pass, as if it were not there.
type AlwaysAdmit struct{}

// Name implements Plugin.
func (AlwaysAdmit) Name() string { return "AlwaysAdmit" }

// Handles implements Plugin.
func (AlwaysAdmit) Handles(Operation) bool { return true }
