// Package auth declares the flags of authentication and authorization and builds what they configure.
package auth

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/proxy"
	"github.com/rowlock/rowlock/authx/remote"
	"github.com/rowlock/rowlock/authx/tokenfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server"
	apiaccess "github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/datadir"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
	"github.com/rowlock/rowlock/server/wire"
)

// AuthenticationFlags are the flags of authentication.
type AuthenticationFlags struct {
	clientCA, tokenFile  string
	anonymous, Bootstrap bool
	accounts             accountOptions
	issuers              issuerOptions
	proxy                proxyOptions
}

func (o *AuthenticationFlags) AddTo(f *pflag.FlagSet) {
	f.StringVar(&o.clientCA, "client-ca-file", "", "authorities of client certificates, in addition to that of the data directory")
	f.StringVar(&o.tokenFile, "token-auth-file", "", "CSV file of static bearer tokens: token, user name, user uid, \"group,group\"")
	f.BoolVar(&o.anonymous, "anonymous-auth", true, "accept requests without credentials as system:anonymous")
	f.BoolVar(&o.Bootstrap, "enable-bootstrap-token-auth", true, "accept bootstrap tokens, Secrets of kube-system, as bearer tokens")
	o.accounts.addTo(f)
	o.issuers.addTo(f)
	o.proxy.addTo(f)
}

// proxyOptions are the flags of the authenticating proxy.
type proxyOptions struct {
	ca                                    string
	names, user, uid, groups, extraPrefix []string
}

func (o *proxyOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.ca, "requestheader-client-ca-file", "", "authorities of the certificates of authenticating proxies")
	f.StringSliceVar(&o.names, "requestheader-allowed-names", nil, "common names of authenticating proxies (default: any of their authority)")
	f.StringSliceVar(&o.user, "requestheader-username-headers", nil, "headers in which an authenticating proxy names the user, such as X-Remote-User")
	f.StringSliceVar(&o.uid, "requestheader-uid-headers", nil, "headers in which an authenticating proxy names the user's UID, such as X-Remote-Uid")
	f.StringSliceVar(&o.groups, "requestheader-group-headers", nil, "headers in which an authenticating proxy names groups, such as X-Remote-Group")
	f.StringSliceVar(&o.extraPrefix, "requestheader-extra-headers-prefix", nil, "prefixes of headers with further attributes of the user, such as X-Remote-Extra-")
}

func (o *proxyOptions) build(gate func(string) bool, log *slog.Logger) (authx.Authenticator, error) {
	if o.ca == "" {
		if len(o.user)+len(o.uid)+len(o.groups)+len(o.extraPrefix)+len(o.names) > 0 {
			return nil, fmt.Errorf("--requestheader-client-ca-file is needed for the other --requestheader flags")
		}
		return nil, nil
	}
	if len(o.uid) > 0 && !gate("RemoteRequestHeaderUID") {
		return nil, fmt.Errorf("--requestheader-uid-headers requires the RemoteRequestHeaderUID feature gate")
	}
	roots, err := flagfile.Authorities(log, flagfile.New("--requestheader-client-ca-file", o.ca))
	if err != nil {
		return nil, err
	}
	if len(o.user) == 0 {
		log.Warn("no header may name users, so no authenticating proxy is trusted; set --requestheader-username-headers", "flag", "--requestheader-client-ca-file", "file", o.ca)
		return nil, nil
	}
	cfg := proxy.Config{Roots: roots, AllowedNames: o.names, User: o.user, UID: o.uid, Groups: o.groups, ExtraPrefix: o.extraPrefix}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(o.names) == 0 {
		log.Warn("any certificate of the proxies' authority may name any user; --requestheader-allowed-names restricts them", "flag", "--requestheader-client-ca-file", "file", o.ca)
	}
	return proxy.New(cfg), nil
}

// apart refuses authorities of proxies that are also authorities of clients: each client could impersonate any user.
func (o *AuthenticationFlags) apart(c Config) error {
	if o.proxy.ca == "" {
		return nil
	}
	proxies, err := clientcert.LoadAuthorities(o.proxy.ca)
	if err != nil {
		return flagfile.New("--requestheader-client-ca-file", o.proxy.ca).Wrap(err)
	}
	for _, clients := range []flagfile.File{flagfile.New("--client-ca-file", o.clientCA), flagfile.New("--data-dir", c.Dir.CACert)} {
		if clients.Path == "" {
			continue
		}
		certs, err := clientcert.LoadAuthorities(clients.Path)
		if err != nil {
			return clients.Wrap(err)
		}
		if slices.ContainsFunc(certs, func(c *x509.Certificate) bool { return slices.ContainsFunc(proxies, c.Equal) }) {
			return fmt.Errorf("--requestheader-client-ca-file and %s contain overlapping certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users", clients.Flag)
		}
	}
	return nil
}

// Authentication holds the authenticators that the flags configure.
type Authentication struct {
	Authenticate func(apiaccess.Host) apiaccess.Authentication
	Tokens       tokenverbs.Config
	// issueForSecret signs tokens that Secrets hold.
	IssueForSecret func(namespace, account, uid, secret string) (string, error)
	Routes         map[string]server.Route
	Loops          []server.Loop
	closers        []io.Closer                       // of connections that live as long as the server
	Published      func() (map[string]string, error) // to extension servers
	Collectors     []prometheus.Collector
	id             string // a hash that identifies this server in metrics
	anonymous      bool
	openPaths      []string              // for anonymous requests; nil: all
	Authorities    func() *x509.CertPool // of all client certificates that may be accepted
	Keys           ClusterKeys
}

// Close closes the connections.
func (a *Authentication) Close() {
	for _, c := range a.closers {
		_ = c.Close()
	}
}

// Config has the parameters of authentication besides its flags.
type Config struct {
	Dir       *datadir.Dir
	Front     *datadir.FrontProxy // the front-proxy files, if this server has made them itself
	Address   string              // host:port of the server for other machines
	Gate      func(string) bool
	Release   release.Version
	Log       *slog.Logger
	AllowsAll func() bool // whether every request is allowed at present
	TLSKey    string
	Dial      remote.Dial // of the token webhook; nil: directly

	// Egress connects to token issuers in a network of the egress selector; it returns nil for one without a proxy.
	Egress func(network string) remote.Dial
}

func (o *AuthenticationFlags) Build(ctx context.Context, c Config) (*Authentication, error) {
	a := &Authentication{
		Published: o.published(c), id: program.ServerID(c.Address), anonymous: o.anonymous,
	}
	var chain authx.Chain
	front, err := o.proxy.build(c.Gate, c.Log)
	if err != nil {
		return nil, err
	}
	if front != nil {
		chain = append(chain, front)
	}
	roots, err := flagfile.Authorities(c.Log, flagfile.New("--data-dir", c.Dir.CACert), flagfile.New("--client-ca-file", o.clientCA))
	if err != nil {
		return nil, err
	}
	if c.Release.Has(release.NamedProxies) && len(o.proxy.names) == 0 {
		if err := o.apart(c); err != nil {
			return nil, err
		}
	}
	chain = append(chain, clientcert.New(roots, c.Gate("AllowParsingUserUIDFromCertAuth")))
	// The files are those of the authenticators, which report their faults.
	if a.Authorities, err = flagfile.Authorities(slog.New(slog.DiscardHandler), flagfile.New("--data-dir", c.Dir.CACert),
		flagfile.New("--client-ca-file", o.clientCA), flagfile.New("--requestheader-client-ca-file", o.proxy.ca)); err != nil {
		return nil, err
	}
	if a.Keys.Authorities, err = fingerprints(c.Dir.CACert, o.clientCA); err != nil {
		return nil, err
	}
	tokens, err := o.tokens(ctx, c, a)
	if err != nil {
		return nil, err
	}
	if a.anonymous && c.AllowsAll() {
		c.Log.Warn("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer")
	}
	a.Authenticate = func(h apiaccess.Host) apiaccess.Authentication {
		return a.with(chain, tokens(h), c.AllowsAll)
	}
	return a, nil
}

// with adds bearer tokens and anonymous requests to the other authenticators. While AlwaysAllow is among the
// authorizers, requests without credentials are refused, however anonymous requests were enabled.
func (a *Authentication) with(chain authx.Chain, tokens authx.TokenChain, open func() bool) apiaccess.Authentication {
	audiences := a.Tokens.Audiences
	chain = append(chain, authx.Bearer{Tokens: tokens, Audiences: audiences}, authx.Socket{Tokens: tokens, Audiences: audiences})
	made := apiaccess.Authentication{Authenticator: chain}
	if a.anonymous {
		made.Authenticator = authx.AllowAnonymous{Next: chain, Paths: a.openPaths, Closed: open}
	}
	made.Review = func(ctx context.Context, token string, wanted []string) (*authx.Authenticated, bool, error) {
		return authx.Review(ctx, tokens, a.anonymous && a.openPaths == nil && !open(), token, wanted)
	}
	return made
}

// published returns the configuration by which extension servers authenticate requests: those of clients, and those
// that this server forwards.
func (o *AuthenticationFlags) published(c Config) func() (map[string]string, error) {
	files := []flagfile.File{flagfile.New("client-ca-file", c.Dir.CACert), flagfile.New("client-ca-file", o.clientCA), flagfile.New("requestheader-client-ca-file", o.proxy.ca)}
	names := o.proxy.names
	if c.Front != nil {
		files = append(files, flagfile.New("requestheader-client-ca-file", c.Front.CACert))
		if o.proxy.ca == "" || len(names) > 0 { // else any name is good
			names = append(slices.Clone(names), datadir.FrontProxyName)
		}
	}
	with := func(have []string, ours string) []string {
		if slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, ours) }) {
			return have
		}
		return append(slices.Clone(have), ours)
	}
	lists := map[string][]string{
		"requestheader-allowed-names":        names,
		"requestheader-username-headers":     with(o.proxy.user, aggregator.UserHeader),
		"requestheader-group-headers":        with(o.proxy.groups, aggregator.GroupHeader),
		"requestheader-extra-headers-prefix": with(o.proxy.extraPrefix, aggregator.ExtraPrefix),
	}
	if c.Gate("RemoteRequestHeaderUID") {
		lists["requestheader-uid-headers"] = with(o.proxy.uid, aggregator.UIDHeader)
	}
	return func() (map[string]string, error) {
		d := map[string]string{}
		for _, f := range files {
			if f.Path == "" {
				continue
			}
			text, err := os.ReadFile(f.Path)
			if err != nil {
				return nil, err
			}
			d[f.Flag] += string(text) + "\n"
		}
		if d["requestheader-client-ca-file"] == "" {
			return d, nil // no server would accept such headers
		}
		for key, values := range lists {
			text, _ := json.Marshal(append([]string{}, values...)) // strings always can be
			d[key] = string(text)
		}
		return d, nil
	}
}

// tokens loads the inputs of the authenticators of bearer tokens. The returned function creates the authenticators, in
// order.
func (o *AuthenticationFlags) tokens(ctx context.Context, c Config, a *Authentication) (func(apiaccess.Host) authx.TokenChain, error) {
	accounts, err := o.accounts.build(ctx, c, a)
	if err != nil {
		return nil, err
	}
	var static authx.TokenChain // zero or one
	agnostic := func(t authx.TokenAuthenticator) authx.TokenAuthenticator {
		return authx.AudienceAgnostic{Tokens: t, API: a.Tokens.Audiences}
	}
	if o.tokenFile != "" {
		file := flagfile.New("--token-auth-file", o.tokenFile)
		listed, err := tokenfile.Load(o.tokenFile)
		if err != nil {
			return nil, file.Wrap(err)
		}
		for _, remark := range listed.Remarks {
			c.Log.Warn("the file of static tokens: "+remark, "flag", file.Flag, "file", file.Path)
		}
		flagfile.WarnLoose(c.Log, file)
		static = append(static, agnostic(listed))
	}
	others, anonymous, err := o.issuers.build(c, a, o.accounts.issuers)
	if err != nil {
		return nil, err
	}
	if anonymous != nil {
		a.anonymous, a.openPaths = anonymous.Enabled, anonymous.Paths()
	}
	return func(h apiaccess.Host) authx.TokenChain {
		chain := static
		if o.Bootstrap {
			chain = append(chain, agnostic(&bootstrap.Authenticator{
				Secrets: apiaccess.NewLookup(h), Clock: time.Now,
				Gate: authx.NewGate(authx.GateConfig{What: "bootstrap tokens", All: maxTokenLookups, Each: maxTokenLookups / 16, Source: connectionOf}),
			}))
		}
		return append(append(chain, accounts(h)), others...)
	}, nil
}

// maxTokenLookups limits concurrent lookups of bootstrap tokens, for all clients together.
const maxTokenLookups = 256

// connectionOf returns the connection of a request; nil if there is none.
func connectionOf(ctx context.Context) any {
	if c := wire.From(ctx); c != nil {
		return c
	}
	return nil
}
