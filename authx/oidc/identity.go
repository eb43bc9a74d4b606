package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sigsjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/meter"
)

// claims are the claims of a token: each by itself, and all as expressions see them.
type claims struct {
	raw   map[string]json.RawMessage
	value map[string]any
	meter *meter.Meter // of all expressions
}

var errAbsent = errors.New("claim not present")

func (c *claims) read(name string, into any) error {
	v, ok := c.raw[name]
	if !ok {
		return errAbsent
	}
	return json.Unmarshal(v, into)
}

// identity maps claims and checks all rules, in the order that clients know.
func (a *Authenticator) identity(ctx context.Context, raw json.RawMessage) (*authx.Identity, error) {
	c := &claims{meter: meter.New(ctx, meter.MaxSteps)}
	if err := json.Unmarshal(raw, &c.raw); err != nil {
		return nil, fmt.Errorf("oidc: parse claims: %w", err)
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &c.value); err != nil {
		return nil, fmt.Errorf("oidc: parse claims: %w", err)
	}
	if err := a.fetch(ctx, c); err != nil {
		return nil, fmt.Errorf("oidc: could not expand distributed claims: %w", err)
	}
	id := &authx.Identity{}
	var err error
	if id.Name, err = a.username(ctx, c); err != nil {
		return nil, err
	}
	if id.Groups, err = a.groups(ctx, c); err != nil {
		return nil, err
	}
	if id.UID, err = a.uid(ctx, c); err != nil {
		return nil, err
	}
	if id.Extra, err = a.extra(ctx, c); err != nil {
		return nil, err
	}
	if err := a.checkClaims(ctx, c); err != nil {
		return nil, err
	}
	for _, r := range a.compiled.userRules {
		if err := r.check(ctx, userValue(id), c.meter); err != nil {
			return nil, fmt.Errorf("oidc: error evaluating user info validation rule: %w", err)
		}
	}
	return id, nil
}

func (a *Authenticator) username(ctx context.Context, c *claims) (string, error) {
	if e := a.compiled.username; e != nil {
		name, err := evalText(ctx, e, c, "username")
		if err == nil && name == "" {
			err = errors.New("oidc: empty username via CEL expression is not allowed")
		}
		return name, err
	}
	m := a.provider.ClaimMappings.Username
	var name string
	if err := c.read(m.Claim, &name); err != nil {
		return "", fmt.Errorf("oidc: parse username claims %q: %w", m.Claim, err)
	}
	if m.Claim == "email" {
		var verified bool
		if err := c.read("email_verified", &verified); err != nil {
			if !errors.Is(err, errAbsent) {
				return "", fmt.Errorf("oidc: parse 'email_verified' claim: %w", err)
			}
		} else if !verified {
			return "", errors.New("oidc: email not verified")
		}
	}
	if name = prefix(m) + name; name == "" {
		return "", fmt.Errorf("oidc: empty username via claim %q is not allowed", m.Claim)
	}
	return name, nil
}

func prefix(m Mapping) string {
	if m.Prefix == nil {
		return ""
	}
	return *m.Prefix
}

// evalText evaluates the expression of a mapping to one string.
func evalText(ctx context.Context, e *expression, c *claims, what string) (string, error) {
	out, err := e.eval(ctx, c.value, c.meter)
	if err != nil {
		return "", fmt.Errorf("oidc: error evaluating %s claim expression: %w", what, err)
	}
	text, ok := out.Value().(string)
	if !ok {
		return "", fmt.Errorf("oidc: error evaluating %s claim expression: %s claim expression must return a string", what, what)
	}
	return text, nil
}

func (a *Authenticator) groups(ctx context.Context, c *claims) ([]string, error) {
	if e := a.compiled.groups; e != nil {
		out, err := e.eval(ctx, c.value, c.meter)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating group claim expression: %w", err)
		}
		groups, err := texts(out)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating group claim expression: %w", err)
		}
		return groups, nil
	}
	m := a.provider.ClaimMappings.Groups
	v, ok := c.raw[m.Claim]
	if m.Claim == "" || !ok {
		return nil, nil
	}
	var groups []string
	if err := json.Unmarshal(v, &groups); err != nil {
		var one string
		if json.Unmarshal(v, &one) != nil {
			return nil, fmt.Errorf("oidc: parse groups claim %q: %w", m.Claim, err)
		}
		groups = []string{one}
	}
	for i := range groups {
		groups[i] = prefix(m) + groups[i]
	}
	return groups, nil
}

func (a *Authenticator) uid(ctx context.Context, c *claims) (string, error) {
	if e := a.compiled.uid; e != nil {
		return evalText(ctx, e, c, "uid")
	}
	claim := a.provider.ClaimMappings.UID.Claim
	if claim == "" {
		return "", nil
	}
	var uid string
	if err := c.read(claim, &uid); err != nil {
		return "", fmt.Errorf("oidc: parse uid claim %q: %w", claim, err)
	}
	return uid, nil
}

func (a *Authenticator) extra(ctx context.Context, c *claims) (map[string][]string, error) {
	extra := map[string][]string{}
	var credential string // one that is not text is not a credential ID
	if c.read("jti", &credential) == nil && credential != "" {
		extra[authx.CredentialID] = []string{"JTI=" + credential}
	}
	for key, e := range a.compiled.extra {
		out, err := e.eval(ctx, c.value, c.meter)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating extra claim expression: %w", err)
		}
		values, err := texts(out)
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating extra claim expression: %s: %w", key, err)
		}
		if len(values) > 0 {
			extra[key] = values
		}
	}
	if len(extra) == 0 {
		return nil, nil
	}
	return extra, nil
}

func (a *Authenticator) checkClaims(ctx context.Context, c *claims) error {
	for _, r := range a.provider.ClaimValidationRules {
		if r.Claim == "" {
			continue
		}
		v, ok := c.raw[r.Claim]
		if !ok {
			return fmt.Errorf("oidc: required claim %s not present in ID token", r.Claim)
		}
		var have string
		if err := json.Unmarshal(v, &have); err != nil {
			return fmt.Errorf("oidc: parse claim %s: %w", r.Claim, err)
		}
		if have != r.RequiredValue {
			return fmt.Errorf("oidc: required claim %s value does not match. Got = %s, want = %s", r.Claim, have, r.RequiredValue)
		}
	}
	for _, r := range a.compiled.claimRules {
		if err := r.check(ctx, c.value, c.meter); err != nil {
			return fmt.Errorf("oidc: error evaluating claim validation expression: %w", err)
		}
	}
	return nil
}

// userValue returns an identity as expressions see it: all of its fields are there, whether they are
// empty or not.
func userValue(id *authx.Identity) map[string]any {
	u := map[string]any{"username": id.Name, "uid": id.UID, "groups": []string{}, "extra": map[string][]string{}}
	if id.Groups != nil {
		u["groups"] = id.Groups
	}
	if id.Extra != nil {
		u["extra"] = id.Extra
	}
	return u
}
