//go:build unix

package pgtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Proxy connects clients to a server and simulates bad networks. Close ends its connections and waits for its
// goroutines.
type Proxy struct {
	Port     int
	listener net.Listener
	loops    sync.WaitGroup

	mu     sync.Mutex
	target string
	delay  time.Duration // longest time that a chunk waits
	pairs  map[*pair]bool
	gate   chan struct{} // closed while traffic flows
	back   chan struct{} // the same for the server's answers
	stall  chan struct{} // closed when traffic stops, with the next long request; nil: it flows on
	hold   bool          // answers are held back from the next long request on
	shut   bool
	deaf   chan struct{} // closed when the proxy ends; nil while it accepts

	accepted atomic.Int64
	commits  atomic.Int64 // number of answers to COMMIT to lose
	halves   atomic.Int64 // number of long requests to cut in the middle
}

type pair struct {
	client, server net.Conn
	listens        atomic.Bool   // the client has sent LISTEN
	mute           atomic.Bool   // data from the server is dropped
	dead           atomic.Bool   // the server's end is closed, and the client does not notice
	abandoned      chan struct{} // closed when the client's end is closed
}

func (p *pair) close() {
	p.client.Close()
	p.server.Close()
}

// NewProxy listens on a free port of 127.0.0.1 in front of the server at port.
func NewProxy(port int) (*Proxy, error) { return NewProxyAt(0, port) }

// NewProxyAt listens on a port of 127.0.0.1, 0 for a free one, in front of the server at another port.
func NewProxyAt(at, port int) (*Proxy, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", at))
	if err != nil {
		return nil, err
	}
	p := &Proxy{Port: l.Addr().(*net.TCPAddr).Port, target: fmt.Sprintf("127.0.0.1:%d", port), listener: l, pairs: make(map[*pair]bool), gate: make(chan struct{}), back: make(chan struct{})}
	close(p.gate)
	close(p.back)
	p.loops.Go(p.accept)
	return p, nil
}

// URL returns the connection string of a database behind the proxy.
func (p *Proxy) URL(db string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", p.Port, db)
}

// CloseConnections breaks all connections.
func (p *Proxy) CloseConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair := range p.pairs {
		pair.close()
	}
}

// Stall holds all traffic back until Resume; connections stay open.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

// Delay delays each chunk by a random time up to most, so that data on one connection can overtake earlier
// data on another. 0 ends that.
func (p *Proxy) Delay(most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = most
}

// HalfClose ends all connections to the server, and lets clients believe that theirs are open.
func (p *Proxy) HalfClose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair := range p.pairs {
		pair.dead.Store(true)
		pair.server.Close()
	}
}

// DropNotifications drops data from the server on connections that listen for notifications, which stay open, and returns
// their number.
func (p *Proxy) DropNotifications() (muted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair := range p.pairs {
		if pair.listens.Load() && !pair.mute.Swap(true) {
			muted++
		}
	}
	return muted
}

// Retarget sends later connections to another port.
func (p *Proxy) Retarget(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = fmt.Sprintf("127.0.0.1:%d", port)
}

// StallBatch is Stall from the next long request on, as a batch is: a pool may ask first whether a
// connection that rested for a while lives. It returns a channel that reports when that has
// arrived.
func (p *Proxy) StallBatch() (came <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall = make(chan struct{})
	return p.stall
}

// HoldResponses delays the server's data, from the next long request on, until Resume is called, like a network
// with high latency; requests pass.
func (p *Proxy) HoldResponses() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = true
}

// Resume lets traffic flow again.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall, p.hold = nil, false
	for _, gate := range []chan struct{}{p.gate, p.back} {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
}

// DropCommitReplies swallows the next n answers to COMMIT and breaks their connections.
func (p *Proxy) DropCommitReplies(n int) { p.commits.Store(int64(n)) }

// CutRequests breaks the next n connections in the middle of a long request.
func (p *Proxy) CutRequests(n int) { p.halves.Store(int64(n)) }

// Pending returns how many of the losses and cuts asked for have not happened yet.
func (p *Proxy) Pending() int { return int(max(0, p.commits.Load()) + max(0, p.halves.Load())) }

// Accepted returns how many connections were accepted so far.
func (p *Proxy) Accepted() int64 { return p.accepted.Load() }

// Unresponsive accepts no more connections, and after two or three the system does not answer connection attempts: as
// if their packets were dropped.
func (p *Proxy) Unresponsive() error {
	p.mu.Lock()
	p.deaf = make(chan struct{})
	p.mu.Unlock()
	raw, err := p.listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	if e := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); e != nil {
		return e
	}
	return err
}

// Close ends the proxy.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	p.shut = true
	if p.deaf != nil {
		close(p.deaf)
	}
	p.mu.Unlock()
	p.Resume()
	p.CloseConnections()
	p.loops.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		p.mu.Lock()
		deaf := p.deaf
		p.mu.Unlock()
		if deaf != nil {
			<-deaf
			c.Close()
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		s, err := net.Dial("tcp", target)
		if err != nil {
			c.Close()
			continue
		}
		pr := &pair{client: c, server: s, abandoned: make(chan struct{})}
		p.mu.Lock()
		p.pairs[pr] = true
		shut := p.shut
		p.mu.Unlock()
		if shut {
			pr.close()
		}
		p.loops.Go(func() {
			defer close(pr.abandoned)
			p.copy(pr, s, c, &p.gate, &p.halves, p.half)
		})
		p.loops.Go(func() {
			p.copy(pr, c, s, &p.back, &p.commits, p.noCommit)
			p.mu.Lock()
			delete(p.pairs, pr)
			p.mu.Unlock()
		})
	}
}

// half passes half of a long request.
func (p *Proxy) half(b []byte) ([]byte, bool) { return b[:len(b)/2], long(b) }

// long reports whether a request is a batch, rather than a check of the connection.
func long(b []byte) bool { return len(b) > 400 }

// noCommit drops an answer in which a COMMIT is reported done.
func (p *Proxy) noCommit(b []byte) ([]byte, bool) {
	return nil, bytes.Contains(b, []byte("COMMIT\x00"))
}

// gates returns the conditions for passing bytes in one direction. batch is closed when a request begins from
// then on.
func (p *Proxy) gates(way *chan struct{}, batch bool) (all, one chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if batch && p.stall != nil {
		close(p.stall)
		p.gate, p.stall = make(chan struct{}), nil
	}
	if batch && p.hold {
		p.back, p.hold = make(chan struct{}), false
	}
	return p.gate, *way
}

// copy copies bytes in one direction, while all traffic and that direction are open. spoil returns whether a
// chunk triggers a fault with left occurrences to come, and the part of it that still passes.
func (p *Proxy) copy(pr *pair, to, from net.Conn, way *chan struct{}, left *atomic.Int64, spoil func([]byte) ([]byte, bool)) {
	defer pr.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if pr.dead.Load() {
			if from == pr.server {
				<-pr.abandoned
				return
			}
			if err != nil {
				return
			}
			continue // the client's data is dropped
		}
		if n > 0 {
			if from == pr.client && bytes.Contains(bytes.ToUpper(buf[:min(n, 200)]), []byte("LISTEN ")) {
				pr.listens.Store(true)
			}
			if from == pr.server && pr.mute.Load() {
				continue
			}
			p.mu.Lock()
			delay := p.delay
			p.mu.Unlock()
			if delay > 0 {
				time.Sleep(rand.N(delay))
			}
			all, one := p.gates(way, from == pr.client && long(buf[:n]))
			<-all
			<-one
			if rest, suits := spoil(buf[:n]); suits && left.Load() > 0 && left.Add(-1) >= 0 {
				_, _ = to.Write(rest) // the connection ends anyway
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
