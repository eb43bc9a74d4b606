package main

import (
	"context"
	"crypto/sha256"
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
	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/authx/proxy"
	"github.com/rowlock/rowlock/authx/remote"
	"github.com/rowlock/rowlock/authx/tokenfile"
	"github.com/rowlock/rowlock/server"
	apiaccess "github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/datadir"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
	"github.com/rowlock/rowlock/server/wire"
)

// authOptions are the flags of authentication.
type authOptions struct {
	clientCA, tokenFile  string
	anonymous, bootstrap bool
	accounts             accountOptions
	issuers              issuerOptions
	proxy                proxyOptions
}

func (o *authOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.clientCA, "client-ca-file", "", "authorities whose client certificates are accepted beside those of the data directory's own")
	f.StringVar(&o.tokenFile, "token-auth-file", "", "CSV file of static bearer tokens: token, user name, user uid, \"group,group\"")
	f.BoolVar(&o.anonymous, "anonymous-auth", true, "let requests without credentials in as system:anonymous")
	f.BoolVar(&o.bootstrap, "enable-bootstrap-token-auth", true, "accept bootstrap tokens, Secrets of kube-system, as bearer tokens")
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
	f.StringSliceVar(&o.user, "requestheader-username-headers", nil, "headers in which a proxy names the user, such as X-Remote-User")
	f.StringSliceVar(&o.uid, "requestheader-uid-headers", nil, "headers in which a proxy names the user's UID, such as X-Remote-Uid")
	f.StringSliceVar(&o.groups, "requestheader-group-headers", nil, "headers in which a proxy names groups, such as X-Remote-Group")
	f.StringSliceVar(&o.extraPrefix, "requestheader-extra-headers-prefix", nil, "prefixes of headers in which a proxy says more, such as X-Remote-Extra-")
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
	roots, err := authorities(log, source{"--requestheader-client-ca-file", o.ca})
	if err != nil {
		return nil, err
	}
	if len(o.user) == 0 {
		log.Warn("no header is to name users, so no authenticating proxy is believed; --requestheader-username-headers says which", "flag", "--requestheader-client-ca-file", "file", o.ca)
		return nil, nil
	}
	cfg := proxy.Config{Roots: roots, AllowedNames: o.names, User: o.user, UID: o.uid, Groups: o.groups, ExtraPrefix: o.extraPrefix}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(o.names) == 0 {
		log.Warn("any certificate of the proxies' authority may speak for any user; --requestheader-allowed-names says which", "flag", "--requestheader-client-ca-file", "file", o.ca)
	}
	return proxy.New(cfg), nil
}

// access is what the flags make.
type access struct {
	authenticate func(apiaccess.Host) apiaccess.Authentication
	tokens       tokenverbs.Config
	// issueForSecret signs tokens that Secrets hold.
	issueForSecret func(namespace, account, uid, secret string) (string, error)
	routes         map[string]server.Route
	loops          []server.Loop
	closers        []io.Closer                       // of connections that live as long as the server
	published      func() (map[string]string, error) // to extension servers
	collectors     []prometheus.Collector
	id             string // a hash that stands for this server in metrics
	anonymous      bool
	openPaths      []string              // to anonymous requests; nil: all
	authorities    func() *x509.CertPool // of all client certificates that may be good
	keys           clusterKeys
}

// close ends the connections.
func (a *access) close() {
	for _, c := range a.closers {
		_ = c.Close()
	}
}

// accessConfig is what authentication needs to know besides its flags.
type accessConfig struct {
	dir     *datadir.Dir
	front   *datadir.FrontProxy // what this server shows to aggregated ones, where it made that itself
	address string              // host:port at which others reach the server
	gate    func(string) bool
	log     *slog.Logger
	open    func() bool // whether everybody may do everything at present
	tlsKey  string
	dial    remote.Dial // of the token webhook; nil: directly
}

func (o *authOptions) build(ctx context.Context, c accessConfig) (*access, error) {
	a := &access{
		published: o.published(c), id: idHash(c.address), anonymous: o.anonymous,
	}
	var chain authx.Chain
	front, err := o.proxy.build(c.gate, c.log)
	if err != nil {
		return nil, err
	}
	if front != nil {
		chain = append(chain, front)
	}
	roots, err := authorities(c.log, source{"--data-dir", c.dir.CACert}, source{"--client-ca-file", o.clientCA})
	if err != nil {
		return nil, err
	}
	chain = append(chain, clientcert.New(roots))
	// The files are those of the authenticators, who tell of what is wrong with them.
	if a.authorities, err = authorities(slog.New(slog.DiscardHandler), source{"--data-dir", c.dir.CACert},
		source{"--client-ca-file", o.clientCA}, source{"--requestheader-client-ca-file", o.proxy.ca}); err != nil {
		return nil, err
	}
	if a.keys.Authorities, err = fingerprints(c.dir.CACert, o.clientCA); err != nil {
		return nil, err
	}
	tokens, err := o.tokens(ctx, c, a)
	if err != nil {
		return nil, err
	}
	if a.anonymous && c.open() {
		c.log.Warn("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer")
	}
	a.authenticate = func(h apiaccess.Host) apiaccess.Authentication {
		return a.with(chain, tokens(h), c.open)
	}
	return a, nil
}

// with adds tokens, and anonymous requests, to other ways to authenticate a request.
// Where everybody may do everything, nobody is let in without being asked who it is,
// however anonymous requests were turned on and whenever AlwaysAllow came in.
func (a *access) with(chain authx.Chain, tokens authx.TokenChain, open func() bool) apiaccess.Authentication {
	audiences := a.tokens.Audiences
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

// published is what extension servers are told of how requests are authenticated: by this
// server and, where it passes requests on, by whom it then speaks for.
func (o *authOptions) published(c accessConfig) func() (map[string]string, error) {
	files := []source{{"client-ca-file", c.dir.CACert}, {"client-ca-file", o.clientCA}, {"requestheader-client-ca-file", o.proxy.ca}}
	names := o.proxy.names
	if c.front != nil {
		files = append(files, source{"requestheader-client-ca-file", c.front.CACert})
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
	if c.gate("RemoteRequestHeaderUID") {
		lists["requestheader-uid-headers"] = with(o.proxy.uid, aggregator.UIDHeader)
	}
	return func() (map[string]string, error) {
		d := map[string]string{}
		for _, f := range files {
			if f.path == "" {
				continue
			}
			text, err := os.ReadFile(f.path)
			if err != nil {
				return nil, err
			}
			d[f.flag] += string(text) + "\n"
		}
		if d["requestheader-client-ca-file"] == "" {
			return d, nil // nobody would believe such headers
		}
		for key, values := range lists {
			text, _ := json.Marshal(append([]string{}, values...)) // strings always can be
			d[key] = string(text)
		}
		return d, nil
	}
}

// tokens reads what all ways to judge a bearer token need. The function that it returns
// makes them, in their order.
func (o *authOptions) tokens(ctx context.Context, c accessConfig, a *access) (func(apiaccess.Host) authx.TokenChain, error) {
	accounts, err := o.accounts.load(ctx, c, a)
	if err != nil {
		return nil, err
	}
	var static authx.TokenChain // zero or one
	agnostic := func(t authx.TokenAuthenticator) authx.TokenAuthenticator {
		return authx.Agnostic{Tokens: t, API: a.tokens.Audiences}
	}
	if o.tokenFile != "" {
		file := source{"--token-auth-file", o.tokenFile}
		listed, err := tokenfile.Load(o.tokenFile)
		if err != nil {
			return nil, file.failed(err)
		}
		for _, remark := range listed.Remarks {
			c.log.Warn("the file of static tokens: "+remark, "flag", file.flag, "file", file.path)
		}
		reportLoose(c.log, file)
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
		if o.bootstrap {
			chain = append(chain, agnostic(&bootstrap.Authenticator{
				Secrets: apiaccess.NewLookup(h), Clock: time.Now,
				Gate: authx.NewGate(authx.GateConfig{What: "bootstrap tokens", All: maxLookups, Each: maxLookups / 16, Source: asker}),
			}))
		}
		return append(append(chain, accounts(h)), others...)
	}, nil
}

// maxLookups is how many bootstrap tokens are looked up at once, whoever sends them.
const maxLookups = 256

// asker is the connection that a credential came by; nil where there is none.
func asker(ctx context.Context) any {
	if c := wire.From(ctx); c != nil {
		return c
	}
	return nil
}

// idHash tells servers apart in metrics without naming them.
func idHash(address string) string {
	sum := sha256.Sum256([]byte(address))
	return fmt.Sprintf("sha256:%x", sum)
}

// authorities reads certificates from files, again when they change. Sources without
// a path do not count.
func authorities(log *slog.Logger, sources ...source) (func() *x509.CertPool, error) {
	var paths, flags []string
	for _, s := range sources {
		if s.path != "" {
			paths, flags = append(paths, s.path), append(flags, s.flag)
		}
	}
	read := func() (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		for _, s := range sources {
			if s.path == "" {
				continue
			}
			certs, err := clientcert.LoadAuthorities(s.path)
			if err != nil {
				return nil, s.failed(err)
			}
			for _, c := range certs {
				pool.AddCert(c)
			}
		}
		return pool, nil
	}
	v, err := freshfile.New(read, func(err error) {
		log.Warn("changed authorities cannot be read, the last ones stay", "flags", flags, "files", paths, "error", err)
	}, paths...)
	if err != nil {
		return nil, err
	}
	return v.Get, nil
}
