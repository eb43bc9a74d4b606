package authnconfig

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/authx/oidc"
)

const (
	pollEvery = 250 * time.Millisecond // how often the file is checked
	readyIn   = 30 * time.Second       // how long providers of a changed file may take to answer
)

// Providers verifies tokens with the providers of a configuration, which may come from a file that changes.
type Providers struct {
	Audiences []string // of the API
	Rules     Rules    // of the file
	Path      string   // of the file; "" for a configuration that stays
	Log       *slog.Logger
	// Source identifies the client of a request, as in authx.GateConfig; nil: unknown.
	Source func(ctx context.Context) any
	// Reloaded, if set, is called for each attempt to apply a changed file.
	Reloaded func(ok bool, at time.Time)

	first   *Configuration
	used    []byte // the text that is in use
	current atomic.Pointer[generation]
}

// generation are the providers of one version of the configuration.
type generation struct {
	chain    []*oidc.Authenticator
	byIssuer map[string]*oidc.Authenticator
	stop     context.CancelFunc
	wait     sync.WaitGroup
}

// Start takes a configuration. Providers are looked for once Run is called.
func (p *Providers) Start(c *Configuration, text []byte) error {
	g, err := p.generation(c)
	if err != nil {
		return err
	}
	p.first, p.used = c, text
	p.current.Store(g)
	return nil
}

func (p *Providers) generation(c *Configuration) (*generation, error) {
	g := &generation{stop: func() {}, byIssuer: map[string]*oidc.Authenticator{}}
	for _, provider := range c.JWT {
		provider.Source = p.Source
		a, err := oidc.New(provider, p.Audiences)
		if err != nil {
			return nil, err
		}
		g.chain, g.byIssuer[a.Issuer()] = append(g.chain, a), a
	}
	return g, nil
}

// AuthenticateToken implements authx.TokenAuthenticator.
func (p *Providers) AuthenticateToken(ctx context.Context, token string, audiences []string) (*authx.Authenticated, bool, error) {
	// Issuers differ, so that a token is at most one provider's: it is decoded for that one.
	g := p.current.Load()
	if len(g.chain) == 0 {
		return nil, false, nil
	}
	issuer := oidc.IssuerOf(token)
	who, mine, err := g.byIssuer[issuer].AuthenticateToken(ctx, token, audiences)
	if who != nil {
		t := &acceptedToken{providers: p, text: token, issuer: issuer, audiences: audiences, id: who.Identity}
		t.by.Store(g)
		who.StillValid = t.stillValid
	}
	return who, mine, err
}

// Run finds the providers and follows the file until ctx ends.
func (p *Providers) Run(ctx context.Context) error {
	p.run(ctx, p.current.Load())
	defer func() { p.current.Load().end() }()
	if p.Path == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	file := &freshfile.Follower{Path: p.Path, Seen: p.used, Every: pollEvery, Take: p.replace, Took: p.took}
	return file.Run(ctx)
}

// took reports how an attempt to apply a changed file ended.
func (p *Providers) took(err error, repeated bool) {
	switch {
	case err != nil && !repeated:
		p.Log.Error("the changed authentication configuration is not used, the last good one stays", "flag", "--authentication-config", "file", p.Path, "error", err)
	case err == nil:
		p.Log.Info("the changed authentication configuration is in use", "flag", "--authentication-config", "file", p.Path)
	}
	if p.Reloaded != nil {
		p.Reloaded(err == nil, time.Now())
	}
}

// run looks for the providers of a generation in the background, until its end.
func (p *Providers) run(ctx context.Context, g *generation) {
	ctx, g.stop = context.WithCancel(ctx)
	for _, a := range g.chain {
		logged := "" // a provider that fails repeatedly is logged once
		g.wait.Go(func() {
			a.Run(ctx, func(err error) {
				if err.Error() != logged {
					p.Log.Warn("a token issuer does not answer", "flag", p.flag(), "file", p.Path, "error", err)
				}
				logged = err.Error()
			})
		})
	}
}

// flag returns the flag that names the configuration.
func (p *Providers) flag() string {
	if p.Path == "" {
		return "--oidc-issuer-url"
	}
	return "--authentication-config"
}

func (g *generation) end() {
	g.stop()
	g.wait.Wait()
}

// replace takes over a changed file once its providers answer, unless ctx ends before.
func (p *Providers) replace(ctx context.Context, text []byte) error {
	if bytes.Equal(text, p.used) {
		return freshfile.ErrSame
	}
	c, err := p.Rules.Parse(text)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(c.Anonymous, p.first.Anonymous) {
		return field.Forbidden(field.NewPath("anonymous"), "changed from initial configuration file")
	}
	next, err := p.generation(c)
	if err != nil {
		return err
	}
	// Its providers are looked for beyond the end of ctx, which is this attempt's.
	p.run(context.WithoutCancel(ctx), next)
	deadline := time.NewTimer(readyIn)
	defer deadline.Stop()
	for !next.ready() {
		select {
		case <-ctx.Done():
			next.end()
			return ctx.Err()
		case <-deadline.C:
			next.end()
			return fmt.Errorf("providers do not answer within %s", readyIn)
		case <-time.After(pollEvery / 5):
		}
	}
	p.current.Swap(next).end()
	p.used = text
	return nil
}

func (g *generation) ready() bool {
	return !slices.ContainsFunc(g.chain, func(a *oidc.Authenticator) bool { return !a.Ready() })
}
