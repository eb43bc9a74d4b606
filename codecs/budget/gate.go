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
	entries int   // inside, waiting, or both
	used    int64 // of the room
	turn    int64 // when it was last let in, or as good as that
}

// entry is one body, or with no weight one that is inside and wants to work again.
type entry struct {
	user   *visitor
	weight int64
	in     chan struct{}
}

// Pass is what a body has that was let in: room until it leaves, and one of the processors until
// it steps aside. It is for one goroutine. A nil Pass has nothing and needs nothing.
type Pass struct {
	gate  *Gate
	name  string
	entry *entry
	timer *time.Timer
	works *bool // guarded by the mutex of the gate; another one each time
}

// NewGate makes a gate with room for Together.
func NewGate() *Gate {
	return &Gate{atOnce: max(1, runtime.GOMAXPROCS(0)/2), turn: Turn, users: map[string]*visitor{}}
}

// Enter waits until there is room for a weight and it is the user's turn, and takes the
// room until leave is called, once. What is small does not wait. The error is that of the
// context. A nil Gate is always open.
func (g *Gate) Enter(ctx context.Context, user string, weight int64) (leave func(), err error) {
	p, err := g.Come(ctx, user, weight)
	return p.Leave, err
}

// Come is Enter for who may step aside meanwhile. Leave must follow, once.
func (g *Gate) Come(ctx context.Context, user string, weight int64) (*Pass, error) {
	if g == nil || weight < Small {
		return nil, nil
	}
	e, err := g.wait(ctx, user, min(weight, Share))
	if err != nil {
		return nil, err
	}
	p := &Pass{gate: g, name: user, entry: e}
	p.begin()
	return p, nil
}

// begin has the turn end by itself.
func (p *Pass) begin() {
	works := true
	p.works = &works
	p.timer = time.AfterFunc(p.gate.turn, func() { p.gate.rest(&works) })
}

// Aside lets others work while this one waits for something else than a processor, such as a disk.
func (p *Pass) Aside() {
	if p != nil {
		p.timer.Stop()
		p.gate.rest(p.works)
	}
}

// Back waits until one that has stepped aside may work again. The error is that of the context. Who
// works still goes on.
func (p *Pass) Back(ctx context.Context) error {
	if p == nil || p.gate.working(p.works) {
		return nil
	}
	e, err := p.gate.wait(ctx, p.name, 0)
	if err != nil {
		return err
	}
	p.gate.mu.Lock()
	p.gate.forget(p.name, e.user) // it is inside once
	p.gate.mu.Unlock()
	p.begin()
	return nil
}

// Leave gives all of it back.
func (p *Pass) Leave() {
	if p != nil {
		p.Aside()
		p.gate.leave(p.name, p.entry)
	}
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

// rest is stepAside for one that works, once.
func (g *Gate) rest(works *bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *works {
		*works = false
		g.running--
		g.admit()
	}
}

// stepAside lets the next one work, while there is room for it.
func (g *Gate) stepAside() {
	works := true
	g.rest(&works)
}

func (g *Gate) working(works *bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return *works
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
// room, nobody overtakes it but who has room already.
func (g *Gate) admit() {
	if len(g.waiting) == 0 {
		return
	}
	places := g.atOnce
	if g.most != nil {
		places = g.most()
	}
	for g.running < places {
		next := g.next(Share)
		if next >= 0 && g.used+g.waiting[next].weight > Together {
			next = g.next(0)
		}
		if next < 0 {
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

// next finds whose turn it is of those of a weight at most who have not used up their share; -1 for
// nobody's.
func (g *Gate) next(weight int64) int {
	next := -1
	for i, e := range g.waiting {
		if e.weight <= weight && e.user.used+e.weight <= Share && (next < 0 || e.user.turn < g.waiting[next].user.turn) {
			next = i
		}
	}
	return next
}
