package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/authx/serviceaccount/external"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server"
	apiaccess "github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
)

// defaultIssuer is the default issuer of service account tokens.
const defaultIssuer = "https://kubernetes.default.svc"

// accountOptions are the flags of service account tokens.
type accountOptions struct {
	issuers, keyFiles, audiences []string
	signingKey, jwksURI          string
	endpoint                     string // of the external signer
	lookup, extend               bool
	maxAge                       time.Duration
}

func (o *accountOptions) addTo(f *pflag.FlagSet) {
	f.StringArrayVar(&o.issuers, "service-account-issuer", []string{defaultIssuer}, "issuer of service account tokens; may be repeated for more accepted issuers")
	f.StringArrayVar(&o.keyFiles, "service-account-key-file", nil, "PEM file of keys that verify service account tokens; may be repeated (default: that of --tls-private-key-file); the signing key's always does")
	f.StringVar(&o.signingKey, "service-account-signing-key-file", "", "private key that signs service account tokens (default: the data directory's)")
	f.StringVar(&o.endpoint, "service-account-signing-endpoint", "", "unix socket (a path, or @NAME) of a signer that holds the key and signs service account tokens instead of this server; needs the feature gate ExternalServiceAccountTokenSigner")
	f.StringVar(&o.jwksURI, "service-account-jwks-uri", "", "URI of the keys in the discovery document (default: that of this server)")
	f.StringSliceVar(&o.audiences, "api-audiences", nil, "audiences of the API (default: the service account issuer)")
	f.BoolVar(&o.lookup, "service-account-lookup", true, "look up the Secrets of tokens that are stored in one")
	f.BoolVar(&o.extend, "service-account-extend-token-expiration", true, "issue default tokens of pods with a lifetime of a year, for clients that do not reload them")
	f.DurationVar(&o.maxAge, "service-account-max-token-expiration", 0, "longest lifetime of a token; longer ones are shortened to this")
}

// abstractSocket matches the name of a unix socket without a file.
var abstractSocket = regexp.MustCompile(`^@([A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+$`)

func (o *accountOptions) validate(gate func(string) bool) error {
	for i, issuer := range o.issuers {
		if issuer == "" {
			return errors.New("service-account-issuer should not be an empty string")
		}
		if slices.Contains(o.issuers[:i], issuer) {
			return fmt.Errorf("service-account-issuer %q is already specified", issuer)
		}
		if _, err := url.Parse(issuer); strings.Contains(issuer, ":") && err != nil {
			return fmt.Errorf("service-account-issuer %q contained a ':' but was not a valid URL: %w", issuer, err)
		}
	}
	if u, err := url.Parse(o.jwksURI); err != nil {
		return fmt.Errorf("service-account-jwks-uri must be a valid URL: %w", err)
	} else if o.jwksURI != "" && u.Scheme != "https" {
		return fmt.Errorf("service-account-jwks-uri requires https scheme, parsed as: %v", u)
	}
	if o.endpoint != "" {
		switch {
		case o.signingKey != "" || len(o.keyFiles) > 0:
			return errors.New("can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)")
		case !gate("ExternalServiceAccountTokenSigner"):
			return errors.New("setting `--service-account-signing-endpoint` requires enabling ExternalServiceAccountTokenSigner feature gate")
		case !filepath.IsAbs(o.endpoint) && !abstractSocket.MatchString(o.endpoint):
			return fmt.Errorf("invalid value %q passed for `--service-account-signing-endpoint`, should be a valid location on the filesystem or must be prefixed with @ to name UDS in abstract namespace", o.endpoint)
		}
	}
	if slices.Contains(o.audiences, "") {
		return errors.New("api-audiences should not hold an empty string")
	}
	if o.maxAge != 0 && (o.maxAge < time.Hour || o.maxAge > 1<<32*time.Second) {
		return errors.New("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
	}
	return nil
}

// build loads the keys that sign and verify tokens, and prepares the discovery documents. The function that it
// returns makes the authenticator.
func (o *accountOptions) build(ctx context.Context, c Config, a *Authentication) (func(apiaccess.Host) authx.TokenAuthenticator, error) {
	if len(o.issuers) == 0 {
		o.issuers = []string{defaultIssuer}
	}
	if err := o.validate(c.Gate); err != nil {
		return nil, err
	}
	audiences := o.audiences
	if len(audiences) == 0 {
		audiences = o.issuers[:1]
	}
	documents := o.documents(c)
	a.Tokens.Audiences, a.Tokens.MaxAge, a.Tokens.Extend = audiences, o.maxAge, o.extend
	signs := o.local
	if o.endpoint != "" {
		signs = o.external
	}
	keys, err := signs(ctx, c, a, documents)
	if err != nil {
		return nil, err
	}
	if documents != nil {
		a.Routes = map[string]server.Route{}
		for path, document := range documents.Documents() {
			a.Routes[path] = server.Route{Produces: document.MediaType, Handler: document}
		}
	}
	metrics := apiaccess.NewTokenMetrics()
	a.Collectors = append(a.Collectors, metrics.Collectors()...)
	return func(h apiaccess.Host) authx.TokenAuthenticator {
		uses := &apiaccess.TokenUses{API: h.API, Metrics: metrics, Log: c.Log}
		return serviceaccount.New(serviceaccount.Config{
			Issuers: o.issuers, Keys: keys, Audiences: audiences, Lookup: apiaccess.NewLookup(h), KeepLegacy: !o.lookup,
			LegacyUsed: uses.Legacy, Extended: uses.Extended, Unsigned: apiaccess.Unsigned(h),
		})
	}, nil
}

// local signs with a key from a file.
func (o *accountOptions) local(_ context.Context, c Config, a *Authentication, documents *serviceaccount.Published) (serviceaccount.Keys, error) {
	signing := flagfile.New("--service-account-signing-key-file", o.signingKey)
	if o.signingKey == "" {
		signing = flagfile.New("--data-dir", c.Dir.ServiceAccount)
	}
	flagfile.WarnLoose(c.Log, signing)
	private, err := serviceaccount.LoadPrivate(signing.Path)
	if err != nil {
		return nil, signing.Wrap(err)
	}
	signer, err := serviceaccount.NewLocal(private)
	if err != nil {
		return nil, signing.Wrap(err)
	}
	keys := serviceaccount.Fixed{signer.Key()}
	files := o.keyFiles
	if len(files) == 0 && c.TLSKey != "" { // as in a stock server; a key of another kind has none
		if _, err := serviceaccount.LoadPublic(c.TLSKey); err == nil {
			files = []string{c.TLSKey}
		}
	}
	for _, path := range files {
		more, err := serviceaccount.LoadPublic(path)
		if err != nil {
			return nil, flagfile.New("--service-account-key-file", path).Wrap(err)
		}
		for _, k := range more {
			if !slices.ContainsFunc(keys, func(have serviceaccount.Key) bool { return have.ID == k.ID }) {
				keys = append(keys, k)
			}
		}
	}
	for _, k := range keys {
		a.Keys.Tokens = append(a.Keys.Tokens, k.ID)
	}
	a.Tokens.Issue, a.IssueForSecret = serviceaccount.NewSigner(o.issuers[0], signer).Issue, signer.IssueForSecret
	if documents != nil {
		return keys, documents.Set(keys, time.Time{})
	}
	return keys, nil
}

// external delegates signing to another process.
func (o *accountOptions) external(ctx context.Context, c Config, a *Authentication, documents *serviceaccount.Published) (serviceaccount.Keys, error) {
	c.Log.Info("waiting for the signer of service account tokens", "flag", "--service-account-signing-endpoint", "socket", o.endpoint)
	signer, err := external.Open(ctx, external.Config{Socket: o.endpoint, Log: c.Log, Changed: func(keys []serviceaccount.Key, until time.Time) {
		if documents == nil {
			return
		}
		if err := documents.Set(keys, until); err != nil {
			c.Log.Error("the keys of service account tokens cannot be published", "error", err)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("--service-account-signing-endpoint: %w", err)
	}
	longest := signer.Longest()
	switch {
	case o.maxAge > longest:
		_ = signer.Close()
		return nil, fmt.Errorf("service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: %s > %s", o.maxAge, longest)
	case o.maxAge == 0:
		a.Tokens.MaxAge = longest
	}
	if o.extend && longest <= tokenverbs.RenewedAge {
		c.Log.Warn("tokens of pods are not extended: the signer allows no token that lives longer than the hour they ask for",
			"flag", "--service-account-extend-token-expiration", "longest", longest)
	}
	a.Tokens.MaxExtended = longest
	a.Tokens.Issue = serviceaccount.NewSigner(o.issuers[0], signer).Issue
	a.Collectors = append(a.Collectors, signer.Metrics().Collectors()...)
	a.Loops = append(a.Loops, server.Loop{Name: "keys of service account tokens", Run: signer.Run})
	a.closers = append(a.closers, signer)
	return signer, nil
}

// documents returns the discovery document and the keys that verify tokens. They are served only if the issuer is
// a URL that can lead to them.
func (o *accountOptions) documents(c Config) *serviceaccount.Published {
	jwks := cmp.Or(o.jwksURI, "https://"+c.Address+serviceaccount.KeysPath)
	if err := serviceaccount.Discoverable(o.issuers[0], jwks); err != nil {
		c.Log.Warn("the service account issuer's discovery document and keys are not served", "error", err)
		return nil
	}
	return serviceaccount.Publish(o.issuers[0], jwks)
}
