package authnconfig

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/authx/oidc"
)

const (
	pollEvery = 250 * time.Millisecond // how often the file is looked at
	readyIn   = 30 * time.Second       // how long providers of a changed file may take to answer
)

// Providers judges tokens by the providers of a configuration, which may be that of a
// file that changes.
type Providers struct {
	Audiences []string // of the API
	Taken     []string // issuers that no provider may be
	Path      string   // of the file; "" for a configuration that stays
	Log       *slog.Logger
	// Reloaded, if set, is told of each attempt to take over a changed file.
	Reloaded func(ok bool, at time.Time)

	first   *Configuration
	seen    []byte
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
	p.first, p.seen = c, text
	p.current.Store(g)
	return nil
}

func (p *Providers) generation(c *Configuration) (*generation, error) {
	g := &generation{stop: func() {}, byIssuer: map[string]*oidc.Authenticator{}}
	for _, provider := range c.JWT {
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
	return g.byIssuer[oidc.IssuerOf(token)].AuthenticateToken(ctx, token, audiences)
}

// Run finds the providers and follows the file until ctx ends.
func (p *Providers) Run(ctx context.Context) error {
	p.run(ctx, p.current.Load())
	defer func() { p.current.Load().end() }()
	if p.Path == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	for file := freshfile.NewText(p.Path, p.seen, pollEvery); ; {
		text, err := file.Next(ctx)
		if err == nil {
			err = p.replace(ctx, text)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.Log.Error("the changed authentication configuration is not used, the last good one stays", "file", p.Path, "error", err)
		}
		if p.Reloaded != nil {
			p.Reloaded(err == nil, time.Now())
		}
	}
}

// run looks for the providers of a generation in the background, until its end.
func (p *Providers) run(ctx context.Context, g *generation) {
	ctx, g.stop = context.WithCancel(ctx)
	for _, a := range g.chain {
		g.wait.Go(func() {
			a.Run(ctx, func(err error) { p.Log.Warn("a token issuer does not answer", "error", err) })
		})
	}
}

func (g *generation) end() {
	g.stop()
	g.wait.Wait()
}

// replace takes over a changed file once its providers answer.
func (p *Providers) replace(ctx context.Context, text []byte) error {
	c, err := Parse(text, p.Taken)
	if err != nil {
		return err
	}
	if !sameAnonymous(c, p.first) {
		return field.Forbidden(field.NewPath("anonymous"), "changed from initial configuration file")
	}
	next, err := p.generation(c)
	if err != nil {
		return err
	}
	p.run(ctx, next)
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
	return nil
}

func (g *generation) ready() bool {
	for _, a := range g.chain {
		if !a.Ready() {
			return false
		}
	}
	return true
}
