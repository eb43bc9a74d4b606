package fair

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Limits say whom a Gate lets in.
type Limits struct {
	Places int // how many have a turn at once
	// Open is how many of the places there are now, if these are fewer at times; may be nil.
	Open func() int
	// Turn is for how long who was let in keeps others out: then the next one has its turn, though the first is
	// still at work, and keeps its room. 0: until it leaves.
	Turn time.Duration
	// Rest is for how long a place stays empty after a turn; may be nil.
	Rest func(turn time.Duration) time.Duration
	// Room is how much those who are in may weigh together, and Share how much those of one key. 0: there is no bound.
	Room, Share int64
	// Free: who weighs less is let in at once, and has no turn.
	Free int64
}

// Gate lets requests in, as many as there are places and room for. Keys take turns.
type Gate struct {
	limits Limits

	mu     sync.Mutex
	places int // that are taken
	room   int64
	shares map[string]int64 // the room of each key that has any
	queue  Queue[string, *Place]
}

// Place is that of a request that was let in. A nil Place is that of one that had no need to ask.
type Place struct {
	gate   *Gate
	key    string
	weight int64
	in     chan struct{} // closed when it is let in; nil: it was at once
	began  time.Time
	timer  *time.Timer // ends the turn; may be nil
	over   atomic.Bool // the turn is
	left   atomic.Bool
}

// NewGate makes a gate with nobody in it.
func NewGate(l Limits) *Gate { return &Gate{limits: l, shares: map[string]int64{}} }

// Enter waits until the key has its turn and there is room for a weight; what weighs more than a share counts as one.
// Leave must follow. The error is that of ctx. A nil Gate is open.
func (g *Gate) Enter(ctx context.Context, key string, weight int64) (*Place, error) {
	if g == nil || weight < g.limits.Free {
		return nil, nil
	}
	if g.limits.Share > 0 {
		weight = min(weight, g.limits.Share)
	}
	p := &Place{gate: g, key: key, weight: weight}
	g.mu.Lock()
	if g.queue.Len() == 0 && g.places < g.open() && g.shares[key]+weight <= g.share() && g.fits(p) {
		g.queue.Serve(key)
		g.let(p)
		g.mu.Unlock()
		return p, nil
	}
	p.in = make(chan struct{})
	ticket := g.queue.Add(key, p)
	g.admit() // those before it may be such as have their share
	g.mu.Unlock()
	select {
	case <-p.in:
		return p, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.queue.Remove(key, ticket) {
		return p, nil // it was let in at the same moment
	}
	g.admit() // it may have been too large for the room, and the next one is not
	return nil, ctx.Err()
}

// Over says whether the turn has taken so long that somebody else may have one now.
func (p *Place) Over() bool { return p != nil && p.over.Load() }

// Leave gives the place back. More than once does nothing.
func (p *Place) Leave() {
	if p == nil || p.left.Swap(true) {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.end()
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.weight > 0 {
		g.room -= p.weight
		if g.shares[p.key] -= p.weight; g.shares[p.key] == 0 {
			delete(g.shares, p.key)
		}
		g.admit()
	}
}

// end ends the turn, once.
func (p *Place) end() {
	if p.over.Swap(true) {
		return
	}
	if rest := p.gate.limits.Rest; rest != nil {
		if d := rest(time.Since(p.began)); d > 0 {
			time.AfterFunc(d, p.gate.next)
			return
		}
	}
	p.gate.next()
}

// next gives a place to whoever is next.
func (g *Gate) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places--
	g.admit()
}

// open is how many places there are.
func (g *Gate) open() int {
	if g.limits.Open != nil {
		return g.limits.Open()
	}
	return g.limits.Places
}

func (g *Gate) share() int64 {
	if g.limits.Share > 0 {
		return g.limits.Share
	}
	return 1 << 62
}

func (g *Gate) fits(p *Place) bool { return g.limits.Room == 0 || g.room+p.weight <= g.limits.Room }

// admit lets in whom it can: keys that have used up their share are passed over. Where the next one is too large for
// the room that is left, nobody overtakes it.
func (g *Gate) admit() {
	if g.queue.Len() == 0 {
		return
	}
	share := g.share()
	has := func(key string, p *Place) bool { return g.shares[key]+p.weight <= share }
	for places := g.open(); g.places < places; {
		if _, p, ok := g.queue.Peek(has); !ok || !g.fits(p) {
			return
		}
		_, p, _ := g.queue.Next(has)
		g.let(p)
		close(p.in)
	}
}

// let gives p a turn, and its room.
func (g *Gate) let(p *Place) {
	g.places++
	if p.weight > 0 {
		g.room += p.weight
		g.shares[p.key] += p.weight
	}
	p.began = time.Now()
	if g.limits.Turn > 0 {
		p.timer = time.AfterFunc(g.limits.Turn, p.end)
	}
}
