package auth

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/authnconfig"
	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/oidc"
	"github.com/rowlock/rowlock/authx/tokenwebhook"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/release"
)

// issuerOptions are the flags of tokens of other issuers: OpenID Connect, by flags or by file, and the token
// webhook.
type issuerOptions struct {
	file                          string
	url, client, ca               string
	usernameClaim, usernamePrefix string
	groupsClaim, groupsPrefix     string
	algs                          []string
	required                      map[string]string
	webhook, webhookVersion       string
	webhookTTL                    time.Duration
	webhookPlaces                 int
	flags                         *pflag.FlagSet
}

func (o *issuerOptions) addTo(f *pflag.FlagSet) {
	o.flags = f
	f.StringVar(&o.file, "authentication-config", "", "AuthenticationConfiguration file; reloaded when it changes")
	f.StringVar(&o.url, "oidc-issuer-url", "", "https URL of an OpenID Connect provider whose ID tokens are accepted")
	f.StringVar(&o.client, "oidc-client-id", "", "client for which ID tokens must be issued")
	f.StringVar(&o.ca, "oidc-ca-file", "", "authorities of the provider's certificate (default: the system's)")
	f.StringVar(&o.usernameClaim, "oidc-username-claim", "sub", "claim that names the user")
	f.StringVar(&o.usernamePrefix, "oidc-username-prefix", "", "prefix of user names; - for none (default: the issuer and #, unless the claim is email)")
	f.StringVar(&o.groupsClaim, "oidc-groups-claim", "", "claim that holds the groups")
	f.StringVar(&o.groupsPrefix, "oidc-groups-prefix", "", "prefix of groups")
	f.StringSliceVar(&o.algs, "oidc-signing-algs", []string{"RS256"}, "accepted signing algorithms")
	f.StringToStringVar(&o.required, "oidc-required-claim", nil, "claim=value that an ID token must have; may be repeated")
	f.StringVar(&o.webhook, "authentication-token-webhook-config-file", "", "kubeconfig of a service that authenticates bearer tokens")
	f.StringVar(&o.webhookVersion, "authentication-token-webhook-version", "v1beta1", "version of TokenReview that the service speaks: v1beta1 or v1")
	f.IntVar(&o.webhookPlaces, "authentication-token-webhook-max-inflight", 256, "most concurrent calls of the service, a sixteenth of them for one connection; further requests are answered 429")
	f.DurationVar(&o.webhookTTL, "authentication-token-webhook-cache-ttl", 2*time.Minute, "how long the service's answers are cached")
}

// used reports whether an oidc flag was given.
func (o *issuerOptions) used() bool {
	used := false
	o.flags.Visit(func(f *pflag.Flag) { used = used || strings.HasPrefix(f.Name, "oidc-") })
	return used
}

// configuration returns the configuration in the file, or the one that the flags describe.
func (o *issuerOptions) configuration(rules authnconfig.Rules) (*authnconfig.Configuration, []byte, error) {
	if o.file != "" {
		if o.used() {
			return nil, nil, errors.New("authentication-config file and oidc-* flags are mutually exclusive")
		}
		file := flagfile.New("--authentication-config", o.file)
		text, err := file.Read()
		if err != nil {
			return nil, nil, err
		}
		c, err := rules.Parse(text)
		if err != nil {
			return nil, nil, file.Wrap(err)
		}
		if c.Anonymous != nil && o.flags.Changed("anonymous-auth") {
			return nil, nil, field.Forbidden(field.NewPath("anonymous"), "--anonynous-auth flag cannot be set when anonymous field is configured in authentication configuration file")
		}
		return c, text, nil
	}
	c := &authnconfig.Configuration{}
	if !o.used() {
		return c, nil, nil
	}
	p, err := o.provider()
	if err != nil {
		return nil, nil, err
	}
	c.JWT = []oidc.Provider{p}
	if err := oidc.Validate(c.JWT, rules.Taken).ToAggregate(); err != nil {
		return c, nil, o.failed(err)
	}
	return c, nil, nil
}

// failed returns an error about the configuration that names the file or the flags.
func (o *issuerOptions) failed(err error) error {
	if o.file != "" {
		return flagfile.New("--authentication-config", o.file).Wrap(err)
	}
	return fmt.Errorf("--oidc-issuer-url and the other --oidc flags: %w", err)
}

// provider returns the provider that the flags describe.
func (o *issuerOptions) provider() (oidc.Provider, error) {
	p := oidc.Provider{Issuer: oidc.Issuer{URL: o.url, Audiences: []string{o.client}}, SigningAlgs: o.algs}
	if o.url == "" || o.client == "" {
		return p, errors.New("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
	}
	if o.ca != "" {
		file := flagfile.New("--oidc-ca-file", o.ca)
		pem, err := file.Read()
		if err != nil {
			return p, err
		}
		if _, err := clientcert.ParseAuthorities(pem); err != nil {
			return p, file.Wrap(err)
		}
		p.Issuer.CertificateAuthority = string(pem)
	}
	prefix := o.usernamePrefix
	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && o.usernameClaim != "email":
		prefix = o.url + "#"
	}
	if len(p.SigningAlgs) == 0 {
		p.SigningAlgs = []string{"RS256"} // an empty list means the default, not every algorithm
	}
	p.ClaimMappings.Username = oidc.Mapping{Claim: o.usernameClaim, Prefix: &prefix}
	if o.groupsClaim != "" {
		p.ClaimMappings.Groups = oidc.Mapping{Claim: o.groupsClaim, Prefix: &o.groupsPrefix}
	}
	for claim, value := range o.required {
		p.ClaimValidationRules = append(p.ClaimValidationRules, oidc.ClaimValidationRule{Claim: claim, RequiredValue: value})
	}
	return p, nil
}

// build returns the authenticators of tokens, and the paths that anonymous requests may use: nil for all.
func (o *issuerOptions) build(c Config, a *Authentication, taken []string) ([]authx.TokenAuthenticator, *authnconfig.Anonymous, error) {
	if o.file != "" && !c.Gate("StructuredAuthenticationConfiguration") {
		return nil, nil, errors.New("set --feature-gates=StructuredAuthenticationConfiguration=true to use authentication-config file")
	}
	rules := authnconfig.Rules{Taken: taken, V1: c.Release.Has(release.NewerConfigurations)}
	if c.Gate("StructuredAuthenticationConfigurationEgressSelector") {
		rules.Egress = c.Egress
	}
	cfg, text, err := o.configuration(rules)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Anonymous != nil && !c.Gate("AnonymousAuthConfigurableEndpoints") {
		return nil, nil, field.Forbidden(field.NewPath("anonymous"), "anonymous is not supported when AnonymousAuthConfigurableEnpoints feature gate is disabled")
	}
	var chain []authx.TokenAuthenticator
	if len(cfg.JWT) > 0 || o.file != "" {
		reloaded, figures := reloadMetrics("authentication", a.id)
		a.Collectors = append(a.Collectors, figures...)
		p := &authnconfig.Providers{Audiences: a.Tokens.Audiences, Rules: rules, Path: o.file, Log: c.Log, Source: connectionOf, Reloaded: reloaded}
		if err := p.Start(cfg, text); err != nil {
			return nil, nil, o.failed(err)
		}
		a.Loops = append(a.Loops, server.Loop{Name: "token issuers", Run: p.Run})
		chain = append(chain, p)
	}
	if o.webhook != "" {
		w, err := o.tokenWebhook(c, a)
		if err != nil {
			return nil, nil, err
		}
		chain = append(chain, w)
	}
	return chain, cfg.Anonymous, nil
}

// tokenWebhook authenticates tokens that no other authenticator recognizes.
func (o *issuerOptions) tokenWebhook(c Config, a *Authentication) (authx.TokenAuthenticator, error) {
	file := flagfile.New("--authentication-token-webhook-config-file", o.webhook)
	flagfile.WarnLoose(c.Log, file)
	if o.webhookPlaces < 1 {
		return nil, errors.New("--authentication-token-webhook-max-inflight must be greater than 0")
	}
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "rowlock_authentication_token_webhook_refused_total",
		Help: "Requests that were answered 429 because too many tokens waited for the token webhook.",
	})
	a.Collectors = append(a.Collectors, refused)
	w, err := tokenwebhook.New(tokenwebhook.Config{
		Kubeconfig: o.webhook, Version: o.webhookVersion, CacheTTL: o.webhookTTL, Audiences: a.Tokens.Audiences, Dial: c.Dial,
		Gate: authx.NewGate(authx.GateConfig{
			What: "the token webhook", All: o.webhookPlaces, Each: max(1, o.webhookPlaces/16), Source: connectionOf, Refused: refused.Inc,
		}),
		Failed: func(err error) {
			c.Log.Error("the token webhook failed; tokens that only it can verify are refused", "flag", file.Flag, "file", file.Path, "error", err)
		},
	})
	return w, file.Wrap(err)
}

// reloadMetrics counts reloads of a configuration file, as a stock server does. what is "authentication" or
// "authorization"; id identifies this server.
func reloadMetrics(what, id string) (func(ok bool, at time.Time), []prometheus.Collector) {
	labels := []string{"apiserver_id_hash", "status"}
	s := metricset.New("apiserver_" + what + "_config_controller_")
	total := s.Counters("automatic_reloads_total", "Reloads of the "+what+" configuration file, by outcome.", labels...)
	last := s.Gauges("automatic_reload_last_timestamp_seconds", "When the "+what+" configuration file was last reloaded, by outcome, in Unix seconds.", labels...)
	return func(ok bool, at time.Time) {
		status := "failure"
		if ok {
			status = "success"
		}
		total.WithLabelValues(id, status).Inc()
		last.WithLabelValues(id, status).Set(float64(at.UnixNano()) / 1e9)
	}, s.Collectors()
}
