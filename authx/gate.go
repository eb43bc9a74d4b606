package authx

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrBusy: too many credentials are being checked, and this one was not. It does not report
// whether the credential is valid.
var ErrBusy = errors.New("too many credentials wait to be judged, please try again later")

// Gate bounds the work that unauthenticated clients cause at once, where checking a credential
// needs another server: in all, and for each connection, so that one connection cannot take all
// places.
type Gate struct {
	what      string // in errors
	all, each int
	source    func(context.Context) any
	refused   func()

	mu     sync.Mutex
	inside int
	by     map[any]int // only of those that are inside
}

// GateConfig sets the bounds of a Gate.
type GateConfig struct {
	What string // is waited for, in errors
	All  int    // at once
	Each int    // of them by one source; 0: no limit but All
	// Source names whom a request comes from, by something that can be compared; nil, or
	// the answer nil: unknown.
	Source  func(context.Context) any
	Refused func() // is called for each refused request; may be nil
}

// NewGate makes a Gate.
func NewGate(c GateConfig) *Gate {
	return &Gate{what: c.What, all: c.All, each: c.Each, source: c.Source, refused: c.Refused, by: map[any]int{}}
}

// Enter takes a place, which leave releases. It does not wait: without a free place the error is ErrBusy. A
// nil Gate is open.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	var from any
	if g.source != nil {
		from = g.source(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside >= g.all || from != nil && g.each > 0 && g.by[from] >= g.each {
		if g.refused != nil {
			g.refused()
		}
		return nil, fmt.Errorf("%s: %w", g.what, ErrBusy)
	}
	g.inside++
	if from != nil {
		g.by[from]++
	}
	return func() { g.leave(from) }, nil
}

func (g *Gate) leave(from any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if from == nil {
		return
	}
	if g.by[from]--; g.by[from] == 0 {
		delete(g.by, from)
	}
}
