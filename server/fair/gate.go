package fair

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Limits configure a Gate.
type Limits struct {
	Places int // requests that have a turn at a time
	// Open is the present number of places, if there can be fewer than Places; it may be nil.
	Open func() int
	// Turn is the longest time for which a request keeps its place: then the next one has its turn, though
	// the first continues, and keeps its room. 0: until it leaves.
	Turn time.Duration
	// Pause returns for how long a place stays empty after a turn; it may be nil.
	Pause func(turn time.Duration) time.Duration
	// Weight bounds the total weight of admitted requests, and KeyWeight that of one key. 0: no bound. With both, a key that has some
	// room gets more only if at least as much as it then has stays free: few keys cannot take all room with many requests.
	Weight, KeyWeight int64
	// Free is the weight below which requests are admitted at once, without a turn.
	Free int64
}

// Gate admits requests while there are places and room. Keys take turns.
type Gate struct {
	limits Limits

	mu        sync.Mutex
	places    int // taken places
	room      int64
	shares    map[string]int64 // weight in use, by key
	queue     Queue[string, *Place]
	contended map[*Place]func() // of places with OnContention
	timer     *time.Timer       // until these functions are called; nil: nothing waits
}

// contentionEvery is the time between two calls of a function given to OnContention.
const contentionEvery = time.Second

// Place is the place of an admitted request. A nil Place is valid, and belongs to a request that needed none.
type Place struct {
	gate   *Gate
	key    string
	weight int64
	in     chan struct{} // closed when it is admitted; nil: it was admitted at once
	began  time.Time
	timer  *time.Timer // ends the turn; may be nil
	over   atomic.Bool // the turn has ended
	left   atomic.Bool
}

// NewGate makes an empty gate.
func NewGate(l Limits) *Gate { return &Gate{limits: l, shares: map[string]int64{}} }

// Enter waits until the key has its turn and there is room for a weight; a weight above a share counts as a
// share. Leave must follow. The error is that of ctx. A nil Gate admits everything.
func (g *Gate) Enter(ctx context.Context, key string, weight int64) (*Place, error) {
	if g == nil || weight < g.limits.Free {
		return nil, nil
	}
	p := g.newPlace(key, weight)
	g.mu.Lock()
	if g.letAtOnce(p) {
		g.mu.Unlock()
		return p, nil
	}
	p.in = make(chan struct{})
	ticket := g.queue.Add(key, p)
	g.admit() // earlier ones may have to wait for their share
	g.watch()
	g.mu.Unlock()
	select {
	case <-p.in:
		return p, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.queue.Remove(key, ticket) {
		return p, nil // it was admitted at the same moment
	}
	g.admit() // it may have blocked the next one, which needs less room
	return nil, ctx.Err()
}

// TryEnter is Enter that does not wait. ok is false if Enter would.
func (g *Gate) TryEnter(key string, weight int64) (p *Place, ok bool) {
	if g == nil || weight < g.limits.Free {
		return nil, true
	}
	p = g.newPlace(key, weight)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.letAtOnce(p) {
		return nil, false
	}
	return p, true
}

func (g *Gate) newPlace(key string, weight int64) *Place {
	if g.limits.KeyWeight > 0 {
		weight = min(weight, g.limits.KeyWeight)
	}
	return &Place{gate: g, key: key, weight: weight}
}

// letAtOnce admits p unless it has to wait.
func (g *Gate) letAtOnce(p *Place) bool {
	if g.queue.Len() > 0 || g.places >= g.open() || !g.may(p.key, p) || !g.fits(p) {
		return false
	}
	g.queue.Serve(p.key)
	g.admitOne(p)
	return true
}

// OnContention makes the gate call f about once a second while the next request waits for room that others have, and p has
// some. The gate calls it never again once Leave has returned. f must not wait, and not call p or the gate.
func (p *Place) OnContention(f func()) {
	if p == nil || p.weight == 0 {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.left.Load() {
		return
	}
	if p.gate.contended == nil {
		p.gate.contended = map[*Place]func(){}
	}
	p.gate.contended[p] = f
	p.gate.watch()
}

// watch starts the timer, if there is a function to be called and something waits.
func (g *Gate) watch() {
	if g.timer == nil && len(g.contended) > 0 && g.queue.Len() > 0 {
		g.timer = time.AfterFunc(contentionEvery, g.notifyContention)
	}
}

// notifyContention calls the functions of OnContention, if the next request waits for room.
func (g *Gate) notifyContention() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, p, ok := g.queue.Peek(g.may); ok && !g.fits(p) {
		for _, f := range g.contended {
			f()
		}
	}
	g.timer = nil
	g.watch()
}

// TurnEnded reports whether the turn has ended because it took too long.
func (p *Place) TurnEnded() bool { return p != nil && p.over.Load() }

// Leave releases the place. Repeated calls do nothing.
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
		delete(g.contended, p)
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
	if rest := p.gate.limits.Pause; rest != nil {
		if d := rest(time.Since(p.began)); d > 0 {
			time.AfterFunc(d, p.gate.next)
			return
		}
	}
	p.gate.next()
}

// next gives the place to the next request.
func (g *Gate) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places--
	g.admit()
}

// open returns the present number of places.
func (g *Gate) open() int {
	if g.limits.Open != nil {
		return g.limits.Open()
	}
	return g.limits.Places
}

// may reports whether a key may have the room of a further request.
func (g *Gate) may(key string, p *Place) bool {
	l, had := g.limits, g.shares[key]
	if l.KeyWeight == 0 || had == 0 {
		return true // a weight is at most a share
	}
	has := had + p.weight
	return has <= l.KeyWeight && (l.Weight == 0 || has <= l.Weight-g.room-p.weight)
}

func (g *Gate) fits(p *Place) bool { return g.limits.Weight == 0 || g.room+p.weight <= g.limits.Weight }

// admit admits as many requests as it can: it skips keys that may have no more room. If the next one is
// too large for the remaining room, no other overtakes it.
func (g *Gate) admit() {
	if g.queue.Len() == 0 {
		return
	}
	for places := g.open(); g.places < places; {
		if _, p, ok := g.queue.Peek(g.may); !ok || !g.fits(p) {
			return
		}
		_, p, _ := g.queue.Next(g.may)
		g.admitOne(p)
		close(p.in)
	}
}

// admitOne gives p a turn, and its room.
func (g *Gate) admitOne(p *Place) {
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
