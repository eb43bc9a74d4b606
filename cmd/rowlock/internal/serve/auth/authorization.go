package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/abac"
	"github.com/rowlock/rowlock/authx/authzconfig"
	"github.com/rowlock/rowlock/authx/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/server"
	apiaccess "github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/verbs/reviews"
)

// AuthorizationFlags are the flags of authorization.
type AuthorizationFlags struct {
	modes                          []string
	file                           string
	policy                         string
	webhook, webhookVersion        string
	authorizedTTL, unauthorizedTTL time.Duration
	flags                          *pflag.FlagSet
}

func (o *AuthorizationFlags) AddTo(f *pflag.FlagSet) {
	o.flags = f
	f.StringSliceVar(&o.modes, "authorization-mode", []string{authzconfig.TypeNode, authzconfig.TypeRBAC}, "authorizers, in this order, from: "+strings.Join(authzconfig.Types, ", "))
	f.StringVar(&o.file, "authorization-config", "", "AuthorizationConfiguration file, instead of --authorization-mode and --authorization-webhook-*; reloaded when it changes")
	f.StringVar(&o.policy, "authorization-policy-file", "", "policies of mode ABAC, one JSON object a line")
	f.StringVar(&o.webhook, "authorization-webhook-config-file", "", "kubeconfig of the service for mode Webhook")
	f.StringVar(&o.webhookVersion, "authorization-webhook-version", "v1beta1", "version of SubjectAccessReview that the service speaks: v1beta1 or v1")
	f.DurationVar(&o.authorizedTTL, "authorization-webhook-cache-authorized-ttl", 5*time.Minute, "how long the service's approvals are cached")
	f.DurationVar(&o.unauthorizedTTL, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second, "how long the service's other answers are cached")
}

// Authorization holds the authorizers that the flags configure.
type Authorization struct {
	authorizer authx.Authorizer
	rules      authx.RuleResolver
	policy     *apiaccess.Policy
	plugins    []admission.Plugin
	collectors []prometheus.Collector
	reload     func(context.Context) error // follows the configuration file; nil without one
	blind      bool                        // of the selectors of requests
	AllowsAll  func() bool                 // every request is allowed at present
}

// validate finds flags that exclude each other.
func (o *AuthorizationFlags) validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	has := func(mode string) bool { return slices.Contains(o.modes, mode) }
	if len(o.modes) == 0 {
		fail("at least one authorization-mode must be passed")
	}
	for _, m := range o.modes {
		switch {
		case !slices.Contains(authzconfig.Types, m):
			fail("authorization-mode %q is not a valid mode", m)
		case m == authzconfig.TypeABAC && o.policy == "":
			fail("authorization-mode ABAC's authorization policy file not passed")
		case m == authzconfig.TypeWebhook && o.webhook == "":
			fail("authorization-mode Webhook's authorization config file not passed")
		}
	}
	if o.policy != "" && !has(authzconfig.TypeABAC) {
		fail("cannot specify --authorization-policy-file without mode ABAC")
	}
	if o.webhook != "" && !has(authzconfig.TypeWebhook) {
		fail("cannot specify --authorization-webhook-config-file without mode Webhook")
	}
	if modes := slices.Sorted(slices.Values(o.modes)); len(slices.Compact(modes)) != len(o.modes) {
		fail("authorization-mode %q has mode specified more than once", o.modes)
	}
	return utilerrors.NewAggregate(errs)
}

// configuration returns the configuration in the file, with its text, or the one that the flags describe.
func (o *AuthorizationFlags) configuration(rules authzconfig.Rules) (*authzconfig.Configuration, []byte, error) {
	if o.file == "" {
		if err := o.validate(); err != nil {
			return nil, nil, err
		}
		return o.fromFlags(), nil, nil
	}
	for _, name := range []string{"authorization-mode", "authorization-webhook-config-file", "authorization-webhook-version", "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl"} {
		if o.flags.Changed(name) {
			return nil, nil, errors.New("--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined")
		}
	}
	file := flagfile.New("--authorization-config", o.file)
	text, err := file.Read()
	if err != nil {
		return nil, nil, err
	}
	c, err := rules.Parse(text)
	if err == nil && c.Has(authzconfig.TypeABAC) && o.policy == "" {
		err = errors.New("authorization-mode ABAC's authorization policy file not passed")
	}
	return c, text, file.Wrap(err)
}

// fromFlags returns the configuration that the flags describe.
func (o *AuthorizationFlags) fromFlags() *authzconfig.Configuration {
	c := &authzconfig.Configuration{}
	for _, m := range o.modes {
		a := authzconfig.Authorizer{Type: m, Name: authzconfig.NameOf(m)}
		if m == authzconfig.TypeWebhook {
			a.Name = "default"
			a.Webhook = &authzconfig.Webhook{
				AuthorizedTTL: metav1.Duration{Duration: o.authorizedTTL}, UnauthorizedTTL: metav1.Duration{Duration: o.unauthorizedTTL},
				Timeout: metav1.Duration{Duration: 30 * time.Second}, SubjectAccessReviewVersion: o.webhookVersion,
				FailurePolicy:  authzconfig.FailurePolicyNoOpinion,
				ConnectionInfo: authzconfig.ConnectionInfo{Type: authzconfig.ConnectionKubeConfig, KubeConfigFile: &o.webhook},
			}
		}
		c.Authorizers = append(c.Authorizers, a)
	}
	return c
}

// Build makes the chain of authorizers for a server of release v. Authorizers that need objects read them from c. id
// identifies this server in metrics. dial connects to webhooks; nil: directly.
func (o *AuthorizationFlags) Build(c *cache.Cache, v release.Version, gate func(string) bool, id string, dial remote.Dial, log *slog.Logger) (*Authorization, error) {
	selectors := gate("AuthorizeWithSelectors")
	rules := authzconfig.Rules{Selectors: selectors, Caches: v.Has(release.NewerConfigurations)}
	cfg, text, err := o.configuration(rules)
	if err != nil {
		return nil, err
	}
	usual, err := apiaccess.NewStandard(c, v, gate)
	if err != nil {
		return nil, err
	}
	z := &Authorization{policy: usual.Policy}
	chain := &authzconfig.Chain{Path: o.file, Builtin: map[string]authzconfig.Builtin{}, Rules: rules, Metrics: authzconfig.NewMetrics(), Dial: dial, Log: log}
	if cfg.Has(authzconfig.TypeRBAC) {
		chain.Builtin[authzconfig.TypeRBAC] = usual.RBAC(log)
	}
	if cfg.Has(authzconfig.TypeNode) {
		chain.Builtin[authzconfig.TypeNode] = usual.Nodes(gate("AuthorizeNodeWithSelectors"))
	}
	if cfg.Has(authzconfig.TypeABAC) {
		if chain.Builtin[authzconfig.TypeABAC], err = o.policies(log); err != nil {
			return nil, fmt.Errorf("invalid authorization config: %w", flagfile.New("--authorization-policy-file", o.policy).Wrap(err))
		}
	}
	if err := chain.Start(cfg, text); err != nil {
		return nil, fmt.Errorf("invalid authorization config: %w", o.origin().Wrap(err))
	}
	o.reportKubeconfigs(cfg, log)
	z.authorizer, z.rules, z.collectors, z.AllowsAll = chain, chain, chain.Metrics.Collectors(), chain.AllowsAll
	if z.blind = !selectors; z.blind {
		z.authorizer = authx.WithoutSelectors{Next: chain}
	}
	if o.file != "" {
		reloaded, figures := reloadMetrics("authorization", id)
		chain.Using = func(cfg *authzconfig.Configuration) { o.reportKubeconfigs(cfg, log) }
		chain.Reloaded, z.reload, z.collectors = logAllowAll(chain, reloaded, log), chain.Run, append(z.collectors, figures...)
	}
	z.plugins = []admission.Plugin{usual.Guard(z.authorizer)}
	return z, nil
}

// origin returns the file to name if a webhook cannot start.
func (o *AuthorizationFlags) origin() flagfile.File {
	if o.file != "" {
		return flagfile.New("--authorization-config", o.file)
	}
	return flagfile.New("--authorization-webhook-config-file", o.webhook)
}

// reportKubeconfigs warns about kubeconfigs of webhooks that other users can read.
func (o *AuthorizationFlags) reportKubeconfigs(cfg *authzconfig.Configuration, log *slog.Logger) {
	for _, path := range cfg.Kubeconfigs() {
		flagfile.WarnLoose(log, flagfile.New(o.origin().Flag, path))
	}
}

// logAllowAll logs when a changed file adds or removes AlwaysAllow.
func logAllowAll(chain *authzconfig.Chain, next func(bool, time.Time), log *slog.Logger) func(bool, time.Time) {
	open := chain.AllowsAll()
	return func(ok bool, at time.Time) {
		if now := chain.AllowsAll(); now != open {
			if open = now; now {
				log.Warn("the changed authorization configuration lets all users do everything (AlwaysAllow); requests without credentials are refused from now on")
			} else {
				log.Warn("the changed authorization configuration no longer has AlwaysAllow; whether requests without credentials are accepted depends on the flags of authentication again")
			}
		}
		next(ok, at)
	}
}

// policies loads the policies of mode ABAC.
func (o *AuthorizationFlags) policies(log *slog.Logger) (*abac.Authorizer, error) {
	z, err := abac.Load(o.policy)
	if err == nil && z.Legacy > 0 {
		log.Warn("the policy file has rules of the form without a version", "file", o.policy, "rules", z.Legacy)
	}
	if err == nil {
		for _, remark := range z.Remarks {
			log.Warn("the policy file has a field that does not count: "+remark, "flag", "--authorization-policy-file", "file", o.policy)
		}
	}
	return z, err
}

// AddTo adds the authorizer to a server's configuration.
func (z *Authorization) AddTo(cfg *server.Config) {
	cfg.Authorizer, cfg.Policy = z.authorizer, z.policy
	cfg.Reviews = &reviews.Config{Authorizer: z.authorizer, Rules: z.rules, IgnoreSelectors: z.blind}
	cfg.Plugins = append(cfg.Plugins, z.plugins...)
	cfg.Collectors = append(cfg.Collectors, z.collectors...)
	if z.reload != nil {
		cfg.Loops = append(cfg.Loops, server.Loop{Name: "authorization configuration", Run: z.reload})
	}
}
