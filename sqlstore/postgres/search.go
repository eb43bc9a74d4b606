package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// search is one look for the server that takes writes, for all who wait for it.
type search struct {
	done  chan struct{}
	found server
	err   error
}

// noServerError says of each server why no connection goes to it.
type noServerError struct{ reasons []error }

func (e *noServerError) Error() string {
	var b strings.Builder
	b.WriteString("no database server that the connection string names takes writes")
	for _, r := range e.reasons {
		fmt.Fprintf(&b, "; %v", r)
	}
	return b.String()
}

func (e *noServerError) Unwrap() []error { return e.reasons }

// asking is a search under way.
type asking struct {
	config *pgconn.Config
	before server
	ready  chan struct{} // closed when the server that took writes last has answered no

	mu      sync.Mutex
	silent  int // how many have not answered yet
	reasons map[server]error
	found   server
	cancel  context.CancelFunc
}

// look asks all servers at the same time. It ends with the first that takes writes, when all have said
// no, or when the time is over. A server that said no is asked again while others are silent, as
// it may have been promoted since.
func (h *hosts) look(c *pgconn.Config, before server) (server, error) {
	ctx, cancel := context.WithTimeout(h.life, h.within)
	defer cancel()
	all := places(c)
	a := &asking{config: c, before: before, ready: make(chan struct{}), silent: len(all), reasons: make(map[server]error), cancel: cancel}
	if before.host == "" {
		close(a.ready)
	}
	var asked sync.WaitGroup
	for _, place := range all {
		asked.Go(func() {
			found, err := addresses(ctx, c, place)
			if err != nil {
				a.no(place, err)
				return
			}
			a.mu.Lock()
			a.silent += len(found) - 1 // in place of the name
			a.mu.Unlock()
			for _, s := range found {
				asked.Go(func() { a.ask(ctx, s) })
			}
		})
	}
	asked.Wait()
	if a.found.host != "" {
		return a.found, nil
	}
	e := &noServerError{}
	for s, err := range a.reasons {
		e.reasons = append(e.reasons, fmt.Errorf("%s: %w", s, err))
	}
	slices.SortFunc(e.reasons, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return server{}, e
}

// no takes an answer that was no; the first of a server counts.
func (a *asking) no(s server, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, again := a.reasons[s]; !again {
		a.silent--
		if s == a.before {
			close(a.ready)
		}
	}
	a.reasons[s] = err
	if a.silent == 0 {
		a.cancel()
	}
}

// ask asks a server until it says yes, or the search is over.
func (a *asking) ask(ctx context.Context, s server) {
	if s != a.before {
		select {
		case <-a.ready:
		case <-time.After(headStart):
		case <-ctx.Done():
		}
	}
	for {
		c := a.config.Copy()
		narrow(c, s)
		conn, err := pgconn.ConnectConfig(ctx, c)
		if err == nil {
			a.mu.Lock()
			if a.found.host == "" {
				a.found = s
			}
			a.mu.Unlock()
			a.cancel()
			farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
			defer cancel()
			conn.Close(farewell)
			return
		}
		a.no(s, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(askAgain):
		}
	}
}

// isNoServer says that an error is a failed attempt to connect.
func isNoServer(err error) bool {
	var none *noServerError
	var connect *pgconn.ConnectError
	return errors.As(err, &none) || errors.As(err, &connect)
}
