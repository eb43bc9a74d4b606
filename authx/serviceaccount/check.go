package serviceaccount

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/authx"
)

var errInvalidated = errors.New("service account token has been invalidated")

// check verifies the times of a token, and the objects that it names.
func (a *Authenticator) check(ctx context.Context, c *claims, now time.Time) error {
	if err := checkTimes(c, now); err != nil {
		return err
	}
	if c.Bound == nil {
		return errors.New("service account token has no kubernetes.io claim")
	}
	b := c.Bound
	account, found, err := a.cfg.Lookup.Object(ctx, "serviceaccounts", b.Namespace, b.Account.Name)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("serviceaccounts %q not found", b.Account.Name)
	case account.UID != b.Account.UID:
		return fmt.Errorf("service account UID (%s) does not match claim (%s)", account.UID, b.Account.UID)
	case gone(account, now):
		return errInvalidated
	}
	if err := a.checkRef(ctx, "secrets", "secret", b.Namespace, b.Secret, now); err != nil {
		return err
	}
	if err := a.checkRef(ctx, "pods", "pod", b.Namespace, b.Pod, now); err != nil {
		return err
	}
	if b.Pod == nil { // with a pod, the node is only informative
		if err := a.checkRef(ctx, "nodes", "node", "", b.Node, now); err != nil {
			return err
		}
	}
	if b.WarnAfter != nil && *b.WarnAfter != 0 && a.cfg.Extended != nil {
		a.cfg.Extended(ctx, c.Subject, now.Sub(b.WarnAfter.Time()))
	}
	return nil
}

// stands reports whether the objects that a token names, which has a hash, are still there, as far as that can be found out.
func (a *Authenticator) stands(ctx context.Context, c *claims, hash [sha256.Size]byte) bool {
	is := func(plural, namespace string, r *ref) bool {
		if r == nil {
			return true
		}
		o, found, err := a.cfg.Lookup.Object(ctx, plural, namespace, r.Name)
		return err != nil || found && o.UID == r.UID && !gone(o, a.now())
	}
	if c.Issuer != LegacyIssuer {
		b := c.Bound
		return is("serviceaccounts", b.Namespace, &b.Account) && is("secrets", b.Namespace, b.Secret) && is("pods", b.Namespace, b.Pod) &&
			(b.Pod != nil || is("nodes", "", b.Node))
	}
	if a.cfg.KeepLegacy {
		return true
	}
	secret, found, err := a.cfg.Lookup.Secret(ctx, c.LegacyNamespace, c.LegacySecret)
	return err != nil || found && secret.Deleted.IsZero() && !secret.Invalid && sha256.Sum256(secret.Token) == hash &&
		is("serviceaccounts", c.LegacyNamespace, &ref{c.LegacyAccount, c.LegacyAccountUID})
}

func checkTimes(c *claims, now time.Time) error {
	switch {
	case c.NotBefore != nil && now.Add(leeway).Before(c.NotBefore.Time()):
		return errors.New("service account token is not valid yet")
	case c.Expiry != nil && now.Add(-leeway).After(c.Expiry.Time()):
		return errors.New("service account token has expired")
	case c.IssuedAt != nil && now.Add(leeway).Before(c.IssuedAt.Time()):
		return errors.New("service account token is issued in the future")
	}
	return nil
}

func (a *Authenticator) checkRef(ctx context.Context, plural, single, namespace string, r *ref, now time.Time) error {
	if r == nil {
		return nil
	}
	o, found, err := a.cfg.Lookup.Object(ctx, plural, namespace, r.Name)
	switch {
	case err != nil:
		return err
	case !found || gone(o, now):
		return errInvalidated
	case o.UID != r.UID:
		return fmt.Errorf("%s UID (%s) does not match service account %s ref claim (%s)", single, o.UID, single, r.UID)
	}
	return nil
}

// gone reports whether an object was deleted long enough ago to count as such.
func gone(o Object, now time.Time) bool {
	return !o.Deleted.IsZero() && o.Deleted.Before(now.Add(-leeway))
}

// checkLegacy checks a token that is stored in a Secret.
func (a *Authenticator) checkLegacy(ctx context.Context, token string, c *claims, now time.Time) error {
	for _, need := range []struct{ name, value string }{
		{"sub", c.Subject}, {"namespace", c.LegacyNamespace}, {"secretName", c.LegacySecret},
		{"serviceAccountName", c.LegacyAccount}, {"serviceAccountUID", c.LegacyAccountUID},
	} {
		if need.value == "" {
			return fmt.Errorf("%s claim is missing", need.name)
		}
	}
	if namespace, name, ok := authx.SplitServiceAccount(c.Subject); !ok || namespace != c.LegacyNamespace || name != c.LegacyAccount {
		return errors.New("sub claim is invalid")
	}
	if err := checkTimes(c, now); err != nil {
		return err
	}
	if a.cfg.KeepLegacy {
		return nil
	}
	return a.lookUpLegacy(ctx, token, c)
}

func (a *Authenticator) lookUpLegacy(ctx context.Context, token string, c *claims) error {
	secret, found, err := a.cfg.Lookup.Secret(ctx, c.LegacyNamespace, c.LegacySecret)
	switch {
	case err != nil:
		return err
	case !found || !secret.Deleted.IsZero():
		return errors.New("Token has been invalidated") //nolint:staticcheck // clients know this text
	case subtle.ConstantTimeCompare(secret.Token, []byte(token)) != 1:
		return errors.New("Token does not match server's copy") //nolint:staticcheck // as above
	}
	account, found, err := a.cfg.Lookup.Object(ctx, "serviceaccounts", c.LegacyNamespace, c.LegacyAccount)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("serviceaccounts %q not found", c.LegacyAccount)
	case !account.Deleted.IsZero():
		return fmt.Errorf("ServiceAccount %s/%s has been deleted", c.LegacyNamespace, c.LegacyAccount)
	case account.UID != c.LegacyAccountUID:
		return fmt.Errorf("ServiceAccount UID (%s) does not match claim (%s)", account.UID, c.LegacyAccountUID)
	}
	if a.cfg.LegacyUsed != nil {
		a.cfg.LegacyUsed(ctx, LegacyUse{
			Namespace: c.LegacyNamespace, Secret: c.LegacySecret, Subject: c.Subject, LastUsed: secret.LastUsed, Invalid: secret.Invalid,
		})
	}
	if secret.Invalid {
		return fmt.Errorf("the token in secret %s/%s for service account %s/%s has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token",
			c.LegacyNamespace, c.LegacySecret, c.LegacyNamespace, c.LegacyAccount)
	}
	return nil
}
