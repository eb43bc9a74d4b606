package wire

import (
	"os"
	"sync"
)

// Parked is a connection that waits in a Poller.
type Parked interface {
	// Resume is called once, when the connection is readable or Wake was called. It must not block.
	Resume()
}

// Poller waits for idle connections with one goroutine for all of them, where the system has epoll.
// Elsewhere, and where epoll accepts no more, each has a goroutine with a small stack.
type Poller struct {
	start sync.Once // by the first connection that is parked
	epoll *os.File  // nil: there is none
	done  chan struct{}

	mu     sync.Mutex
	parked map[uint64]Parked
}

// NewPoller makes one. Close must be called.
func NewPoller() *Poller { return &Poller{parked: map[uint64]Parked{}} }

// run starts the goroutine.
func (p *Poller) run() {
	if p.epoll = newEpoll(); p.epoll == nil {
		return
	}
	p.done = make(chan struct{})
	go func() { // Close waits for it
		defer close(p.done)
		waitEpoll(p.epoll, p.Wake)
	}()
}

// Park has c.Resume called when something can be read from the socket: bytes, the end, or an error.
// The caller must call Wake after it closes the socket. The id is that of c alone.
func (p *Poller) Park(s *Socket, id uint64, c Parked) {
	p.start.Do(p.run)
	p.mu.Lock()
	p.parked[id] = c
	p.mu.Unlock()
	if p.add(s, id) {
		return
	}
	go func() { // ends with the socket at the latest
		_ = s.AwaitReadable() // the next read returns the same error
		p.Wake(id)
	}()
}

// add has epoll report the socket. It returns false where there is no epoll, or it accepts no more sockets
// (/proc/sys/fs/epoll/max_user_watches), or the socket is closed.
func (p *Poller) add(s *Socket, id uint64) bool {
	raw := rawConn(s.Conn)
	if p.epoll == nil || raw == nil {
		return false
	}
	var err error
	closed := raw.Control(func(fd uintptr) { err = addEpoll(p.epoll, fd, id) })
	return closed == nil && err == nil
}

// Wake resumes a connection if it is parked.
func (p *Poller) Wake(id uint64) {
	p.mu.Lock()
	c := p.parked[id]
	delete(p.parked, id)
	p.mu.Unlock()
	if c != nil {
		c.Resume()
	}
}

// Close ends the goroutine. Nothing may be parked any more.
func (p *Poller) Close() {
	if p.epoll != nil {
		_ = p.epoll.Close() // nothing was written
		<-p.done
	}
}
