package budget

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// Together is how much the bodies that are worked on at the same time may take together.
	Together = 4 * Memory
	// Share is how much of it one user may have.
	Share = Together / 2
	// Small is what need not ask, and is not worth a closer look.
	Small = 8 << 20
	// Turn is for how long who was let in keeps the others from the processors. Who
	// takes longer mostly waits for somebody else, such as a webhook.
	Turn = 2 * time.Second
)

// Gate lets heavy bodies in: as many as there is room for, and no more at once than half
// of the processors, so that the other half is left to whoever has light ones. Users take
// turns, so what one sends makes another wait for one of them and not for all.
type Gate struct {
	atOnce int
	most   func() int // how many of atOnce may be in for now; nil: all
	turn   time.Duration

	mu      sync.Mutex
	running int
	used    int64
	users   map[string]*visitor // that are inside or wait
	waiting []*entry            // in the order of their coming
	turns   int64
}

// visitor is a user at the gate.
type visitor struct {
	entries int   // inside or waiting
	used    int64 // of the room
	turn    int64 // when it was last let in, or as good as that
}

// entry is one body.
type entry struct {
	user   *visitor
	weight int64
	in     chan struct{}
}

// NewGate makes a gate with room for Together.
func NewGate() *Gate {
	return &Gate{atOnce: max(1, runtime.GOMAXPROCS(0)/2), turn: Turn, users: map[string]*visitor{}}
}

// Enter waits until there is room for a weight and it is the user's turn, and takes the
// room until leave is called, once. What is small does not wait. The error is that of the
// context. A nil Gate is always open.
func (g *Gate) Enter(ctx context.Context, user string, weight int64) (leave func(), err error) {
	if g == nil || weight < Small {
		return func() {}, nil
	}
	return g.enter(ctx, user, min(weight, Share))
}

// wait comes and waits until it is let in.
func (g *Gate) wait(ctx context.Context, user string, weight int64) (*entry, error) {
	e := g.come(user, weight)
	select {
	case <-e.in:
	case <-ctx.Done():
		if g.giveUp(user, e) {
			return nil, ctx.Err()
		}
	}
	return e, nil
}

func (g *Gate) enter(ctx context.Context, user string, weight int64) (leave func(), err error) {
	e, err := g.wait(ctx, user, weight)
	if err != nil {
		return nil, err
	}
	over := sync.OnceFunc(g.stepAside)
	timer := time.AfterFunc(g.turn, over)
	return func() {
		timer.Stop()
		over()
		g.leave(user, e)
	}, nil
}

func (g *Gate) come(user string, weight int64) *entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.users[user]
	if u == nil {
		// Who comes, or comes back, goes before who was let in last, and behind all who
		// have waited since before that: so nobody is overtaken for ever.
		u = &visitor{turn: g.turns - 1}
		g.users[user] = u
	}
	u.entries++
	e := &entry{user: u, weight: weight, in: make(chan struct{})}
	g.waiting = append(g.waiting, e)
	g.admit()
	return e
}

// giveUp takes an entry out of the line. It is false for one that is in already.
func (g *Gate) giveUp(user string, e *entry) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, e)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	g.forget(user, e.user)
	g.admit() // it may have been the one that was too large for the room
	return true
}

// stepAside lets the next one work, while there is room for it.
func (g *Gate) stepAside() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.admit()
}

func (g *Gate) leave(user string, e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= e.weight
	e.user.used -= e.weight
	g.forget(user, e.user)
	g.admit()
}

func (g *Gate) forget(name string, u *visitor) {
	if u.entries--; u.entries == 0 {
		delete(g.users, name)
	}
}

// admit lets in whom it can: of those who have not used up their share, the one whose
// user waits for its turn the longest. If that one is too large for what is left of the
// room, nobody overtakes it.
func (g *Gate) admit() {
	if len(g.waiting) == 0 {
		return
	}
	places := g.atOnce
	if g.most != nil {
		places = g.most()
	}
	for g.running < places {
		next := -1
		for i, e := range g.waiting {
			if e.user.used+e.weight <= Share && (next < 0 || e.user.turn < g.waiting[next].user.turn) {
				next = i
			}
		}
		if next < 0 || g.used+g.waiting[next].weight > Together {
			return
		}
		e := g.waiting[next]
		g.waiting = slices.Delete(g.waiting, next, next+1)
		g.turns++
		e.user.turn = g.turns
		e.user.used += e.weight
		g.used += e.weight
		g.running++
		close(e.in)
	}
}
