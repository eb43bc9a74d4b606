package embed

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/direct"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/history"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/verbs/reviews"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

const standardIssuer = "https://kubernetes.default.svc"

// maxInMemory limits the size of the default store.
const maxInMemory = 1 << 30

// inMemory opens a store in memory.
func inMemory(context.Context) (sqlstore.Driver, error) {
	return memory.New(memory.Config{MaxBytes: maxInMemory}).Open(), nil
}

// build makes the server.
func (c *ControlPlane) build() error {
	o := &c.options
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	chosen, err := o.release()
	if err != nil {
		return err
	}
	features, err := gates.Parse(chosen.Version, o.FeatureGates)
	if err != nil {
		return fmt.Errorf("FeatureGates: %w", err)
	}
	resources := builtin.Config{Release: chosen.Version, MinCompatibility: chosen.MinCompatibility, ServiceCIDRs: o.ServiceNetworks, EventTTL: o.EventTTL, Feature: features.Enabled}.Resources()
	remarks, err := kinds.Enable(chosen.Version, resources, kinds.ParseRuntimeConfig(o.RuntimeConfig), true, features.Enabled)
	if err != nil {
		return fmt.Errorf("RuntimeConfig: %w", err)
	}
	for _, remark := range append(remarks, features.Remarks()...) {
		o.Log.Warn(remark)
	}
	if o.Past {
		resources = append(resources, history.Resources()...)
	}
	run, err := o.controllers()
	if err != nil {
		return fmt.Errorf("Controllers: %w", err)
	}
	address := o.address()
	catalogue := kinds.NewCatalogue(resources)
	cfg := server.Config{
		Catalogue: catalogue, Cache: server.NewCache(catalogue, json.New(json.Settings{Log: o.Log, View: catalogue.Release().View()}), o.Log),
		Listener: o.Listener, TLS: o.TLS, Address: address, Feature: features.Enabled,
		Admission:   plugins.Config{Enable: o.EnableAdmission, Disable: o.DisableAdmission},
		Controllers: run, ShutdownGrace: o.Grace, Log: o.Log, Release: chosen.Version, Version: o.version(chosen), Clock: time.Now,
		MaxObjectBytes: o.MaxObjectBytes,
	}
	cfg.SetDefaults(o.services())
	storing := sqlstore.Config{Retention: o.Retention, Log: o.Log}
	if o.ConfigureStore != nil {
		o.ConfigureStore(&storing)
	}
	if o.Configure != nil {
		o.Configure(&cfg)
	}
	if err := o.authorize(&cfg); err != nil {
		return err
	}
	if err := o.authenticate(&cfg); err != nil {
		return err
	}
	cfg.Store = sqlstore.New(c.driver, storing)
	c.Store = cfg.Store
	c.Server, err = server.New(cfg)
	return err
}

func (o *Options) controllers() (controllers.Config, error) {
	list := o.Controllers
	if list == nil {
		list = []string{"*"}
	}
	s, err := controllers.Select(list)
	return controllers.Config{Runs: s.Runs, Named: s.Named}, err
}

// services returns the networks of services.
func (o *Options) services() []netip.Prefix {
	if len(o.ServiceNetworks) > 0 {
		return o.ServiceNetworks
	}
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96}), 16)}
}

func (o *Options) address() string {
	switch {
	case o.Address != "":
		return o.Address
	case o.Listener != nil:
		return o.Listener.Addr().String()
	}
	return localHost
}

// release returns the release that the server emulates.
func (o *Options) release() (release.Chosen, error) {
	var emulated, minCompatibility []string
	if o.Release != "" {
		emulated = []string{o.Release}
	}
	if o.MinCompatibility != "" {
		minCompatibility = []string{o.MinCompatibility}
	}
	chosen, err := release.Choose(emulated, minCompatibility)
	if err != nil {
		return chosen, fmt.Errorf("Release and MinCompatibility: %w", err)
	}
	return chosen, nil
}

func (o *Options) version(chosen release.Chosen) version.Info {
	named := cmp.Or(o.Version, "rowlock.embedded")
	return chosen.Info(named)
}

// authorize sets the authorizer and the configuration that depends on it.
func (o *Options) authorize(cfg *server.Config) error {
	usual, err := access.NewStandard(cfg.Cache, cfg.Release, cfg.Feature)
	if err != nil {
		return err
	}
	roles := usual.RBAC(o.Log)
	chain := authx.AuthorizerChain{authx.SystemMasters{}}
	if o.Authorizer != nil {
		chain = append(chain, o.Authorizer)
	} else {
		chain = append(chain, usual.Nodes(cfg.Feature("AuthorizeNodeWithSelectors")), roles)
	}
	cfg.Authorizer, cfg.Policy = chain, usual.Policy
	cfg.Reviews = &reviews.Config{Authorizer: chain, Rules: roles}
	cfg.Plugins = append(cfg.Plugins, usual.Guard(chain))
	for _, a := range o.Admission {
		if a.Name == "" {
			return fmt.Errorf("Admission: a rule has no Name")
		}
		cfg.Plugins = append(cfg.Plugins, admission.Plugin(rule{a}))
	}
	return nil
}

// authenticate sets the authenticators.
func (o *Options) authenticate(cfg *server.Config) error {
	issuer, key := o.Issuer, o.AccountKey
	issuer = cmp.Or(issuer, standardIssuer)
	if key == nil {
		made, err := newKey()
		if err != nil {
			return err
		}
		key = made
	}
	local, err := serviceaccount.NewLocal(key)
	if err != nil {
		return err
	}
	audiences := []string{issuer}
	cfg.Tokens = &tokenverbs.Config{Issue: serviceaccount.NewSigner(issuer, local).Issue, Audiences: audiences, Clock: cfg.Clock}
	cfg.Controllers.IssueForSecret = local.IssueForSecret
	chain := append(authx.Chain{direct.Authenticator{}}, o.Authenticators...)
	if pool := o.ClientAuthorities; pool != nil {
		authorities := func() *x509.CertPool { return pool }
		chain, cfg.ClientAuthorities = append(chain, clientcert.New(authorities, cfg.Feature("AllowParsingUserUIDFromCertAuth"))), authorities
	}
	clock := cfg.Clock
	cfg.Authenticate = func(h access.Host) access.Authentication {
		tokens := append(authx.TokenChain{}, o.TokenAuthenticators...)
		tokens = append(tokens, serviceaccount.New(serviceaccount.Config{
			Issuers: audiences, Keys: serviceaccount.Fixed{local.Key()}, Audiences: audiences, Lookup: access.NewLookup(h), Clock: clock, Unsigned: access.Unsigned(h),
		}))
		asked := append(append(authx.Chain{}, chain...), authx.Bearer{Tokens: tokens, Audiences: audiences})
		made := access.Authentication{Authenticator: asked}
		if o.Anonymous {
			made.Authenticator = authx.AllowAnonymous{Next: asked}
		}
		made.Review = func(ctx context.Context, token string, wanted []string) (*authx.Authenticated, bool, error) {
			return authx.Review(ctx, tokens, o.Anonymous, token, wanted)
		}
		return made
	}
	return nil
}

// newKey returns one key for all control planes of a process without their own: signatures are valid as long
// as the process.
var newKey = sync.OnceValues(func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })
