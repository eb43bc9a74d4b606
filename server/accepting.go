package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// accepting is a listener that notes for how long no connection can be accepted, as where file descriptors are used up.
// Clients wait then, without a word, until some are free again: package net/http tries again within a second.
type accepting struct {
	net.Listener
	log    *slog.Logger
	failed func() // counts

	mu     sync.Mutex
	err    error // the last, while none can be accepted
	since  time.Time
	count  int
	logged bool
	said   time.Time
}

// sayAccept is how often the log has a beginning and an end at most.
const sayAccept = time.Minute

// Accept implements net.Listener.
func (a *accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	a.tell(err)
	return c, err
}

func (a *accepting) tell(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case err != nil:
		a.failed()
		if a.err == nil {
			a.since, a.count, a.logged = now, 0, false
		}
		a.err = err
		a.count++
		if !a.logged && (a.said.IsZero() || now.Sub(a.said) >= sayAccept) {
			a.logged, a.said = true, now
			a.log.Error("connections cannot be accepted: clients wait, and the server tries again", "error", err, "do", advice(err))
		}
	case a.err != nil:
		if a.logged {
			a.log.Warn("connections are accepted again", "failed", a.count, "for", now.Sub(a.since).Round(time.Millisecond), "error", a.err)
		}
		a.err = nil
	}
}

func advice(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files of this process (LimitNOFILE, ulimit -n)"
	case errors.Is(err, syscall.ENFILE):
		return "raise the system's limit of open files (fs.file-max)"
	}
	return "look at the memory and the network of this machine"
}

// stuck says why no connection can be accepted.
func (a *accepting) stuck() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		return nil
	}
	return fmt.Errorf("connections have not been accepted for %s: %w", time.Since(a.since).Round(time.Second), a.err)
}
