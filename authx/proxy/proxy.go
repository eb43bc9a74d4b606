// Package proxy authenticates by the headers that a trusted proxy sets.
//
// It promises: the headers count only with a client certificate of the proxy's
// own authority with an allowed name, and are removed from the request.
package proxy

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/clientcert"
)

// Config defines which headers count, and whose.
type Config struct {
	Roots        func() *x509.CertPool // authorities of proxies' certificates
	AllowedNames []string              // their common names; none: any
	User         []string              // headers, the first that has a value
	UID          []string              // as User
	Groups       []string              // headers whose values are all groups
	ExtraPrefix  []string
}

// Validate names the missing settings.
func (c *Config) Validate() error {
	if len(c.User) == 0 {
		return errors.New("--requestheader-username-headers must name a header when --requestheader-client-ca-file is given")
	}
	for flag, values := range map[string][]string{
		"requestheader-username-headers": c.User, "requestheader-uid-headers": c.UID,
		"requestheader-group-headers": c.Groups, "requestheader-extra-headers-prefix": c.ExtraPrefix,
	} {
		if slices.ContainsFunc(values, func(s string) bool { return strings.TrimSpace(s) == "" }) {
			return fmt.Errorf("empty value in %q", flag)
		}
	}
	return nil
}

// Authenticator reads the headers.
type Authenticator struct {
	cfg      Config
	verifier *clientcert.Verifier
}

// New makes an Authenticator.
func New(cfg Config) *Authenticator {
	return &Authenticator{cfg: cfg, verifier: clientcert.NewVerifier(cfg.Roots)}
}

// Authenticate implements authx.Authenticator. The request of a trusted proxy that names
// no user has the identity of the proxy.
func (a *Authenticator) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	defer a.strip(r.Header)
	leaf, err := a.verifier.Verify(r)
	if leaf == nil || err != nil {
		return nil, err != nil, err
	}
	if name := leaf.Subject.CommonName; len(a.cfg.AllowedNames) > 0 && !slices.Contains(a.cfg.AllowedNames, name) {
		return nil, true, fmt.Errorf("x509: subject with cn=%s is not in the allowed list", name)
	}
	id := &authx.Identity{Name: first(r.Header, a.cfg.User), UID: first(r.Header, a.cfg.UID)}
	if id.Name == "" {
		return nil, false, nil
	}
	for _, h := range a.cfg.Groups {
		for _, group := range r.Header.Values(h) {
			if group != "" {
				id.Groups = append(id.Groups, group)
			}
		}
	}
	id.Extra = a.extra(r.Header)
	return &authx.Authenticated{Identity: id, StillValid: a.verifier.StillValid(r)}, true, nil
}

func first(header http.Header, names []string) string {
	for _, name := range names {
		if v := header.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// extra collects the headers with one of the prefixes.
func (a *Authenticator) extra(header http.Header) map[string][]string {
	var extra map[string][]string
	for name, values := range header {
		for _, prefix := range a.cfg.ExtraPrefix {
			if !hasPrefix(name, prefix) {
				continue
			}
			key := strings.ToLower(name[len(prefix):])
			if plain, err := url.PathUnescape(key); err == nil {
				key = plain
			}
			if extra == nil {
				extra = make(map[string][]string)
			}
			extra[key] = append(extra[key], values...)
		}
	}
	return extra
}

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// strip removes the headers, whichever client sent them.
func (a *Authenticator) strip(header http.Header) {
	for _, names := range [][]string{a.cfg.User, a.cfg.UID, a.cfg.Groups} {
		for _, name := range names {
			header.Del(name)
		}
	}
	for name := range header {
		if slices.ContainsFunc(a.cfg.ExtraPrefix, func(p string) bool { return hasPrefix(name, p) }) {
			delete(header, name)
		}
	}
}
