package servertest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/controllers/elections"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/verbs/reviews"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
)

// issuer is the issuer of the tokens of service accounts.
const issuer = "https://kubernetes.default.svc"

// Complete returns an option: the server is the one that `rowlock serve` runs with flags, of which it knows
// --emulated-version, --runtime-config and --feature-gates. Node agents and roles decide on requests, the
// cluster's own roles exist, anonymous requests are allowed, all paths that are no stored objects are served,
// and features that are off by default are off unless a flag turns them on.
func Complete(t testing.TB, flags ...string) func(*server.Config) {
	t.Helper()
	v, asked, features := parse(t, flags)
	resources := builtin.Config{Release: v, MinCompatibility: v.MinCompatibility(), Feature: features.Enabled}.Resources()
	if _, err := kinds.Enable(v, resources, asked, true, features.Enabled); err != nil {
		t.Fatal(err)
	}
	local, err := serviceaccount.NewLocal(signingKey())
	if err != nil {
		t.Fatal(err)
	}
	signer := serviceaccount.NewSigner(issuer, local)
	return func(c *server.Config) {
		c.Release = v
		c.Catalogue = kinds.NewCatalogue(resources)
		c.Cache = server.NewCache(c.Catalogue, json.New(json.Settings{View: c.Catalogue.Release().View()}), slog.New(slog.DiscardHandler))
		usual, err := access.NewStandard(c.Cache, v, features.Enabled)
		if err != nil {
			t.Fatal(err)
		}
		roles := usual.RBAC(nil)
		c.Authenticator, c.Authenticate = nil, func(h access.Host) access.Authentication {
			tokens := authx.TokenChain{Tokens{Token: Admin}, serviceaccount.New(serviceaccount.Config{
				Issuers: []string{issuer}, Keys: serviceaccount.Fixed{local.Key()}, Audiences: []string{issuer}, Lookup: access.NewLookup(h), Unsigned: access.Unsigned(h),
			})}
			return access.Authentication{
				Authenticator: authx.AllowAnonymous{Next: authx.Chain{authx.Bearer{Tokens: tokens, Audiences: []string{issuer}}}},
				Review:        func(context.Context, string, []string) (*authx.Authenticated, bool, error) { return nil, false, nil },
			}
		}
		c.Authorizer = authx.AuthorizerChain{authx.SystemMasters{}, usual.Nodes(true), roles}
		c.Policy = usual.Policy
		c.Plugins = []admission.Plugin{usual.Guard(c.Authorizer)}
		c.Feature = features.Enabled
		c.SetDefaults([]netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")})
		if features.Enabled("CoordinatedLeaderElection") {
			c.Controllers.Elections = &elections.Config{Times: reconcile.StandardLeaseTimes(), Identity: c.Address}
		}
		c.Version = release.Chosen{Version: v, MinCompatibility: v.MinCompatibility()}.Info("test")
		c.Bootstrap = server.Bootstrap{ServiceIP: net.IPv4(10, 96, 0, 1), AdvertiseIP: net.IPv4(192, 0, 2, 1), AdvertisePort: 6443}
		c.Reviews = &reviews.Config{Authorizer: c.Authorizer, Rules: roles}
		c.Tokens = &tokenverbs.Config{Issue: signer.Issue, Audiences: []string{issuer}}
	}
}

// parse reads flags.
func parse(t testing.TB, flags []string) (release.Version, map[string]string, *gates.Gates) {
	t.Helper()
	lists := map[string][]string{"--emulated-version": nil, "--runtime-config": nil, "--feature-gates": nil}
	for _, flag := range flags {
		name, text, _ := strings.Cut(flag, "=")
		if _, ok := lists[name]; !ok {
			t.Fatalf("a server in this process does not know the flag %s: black-box tests replay what needs it", flag)
		}
		lists[name] = append(lists[name], strings.Split(text, ",")...)
	}
	v := release.Default
	for _, text := range lists["--emulated-version"] {
		var err error
		if v, err = release.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	features, err := gates.Parse(v, lists["--feature-gates"])
	if err != nil {
		t.Fatal(err)
	}
	return v, kinds.ParseRuntimeConfig(lists["--runtime-config"]), features
}

// signingKey is one key for all servers of a test binary: to make one takes a while.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})
